import { describe, expect, test } from 'vitest';
import type { HttpFunction } from '#functions/runtime/http.ts';
import { createRouter } from './gateway-router.ts';

const fn = (method: string, path: string): HttpFunction =>
  Object.assign(async () => ({}), { route: { method, path } }) as unknown as HttpFunction;
const route = createRouter([fn('GET', '/v1/things/{name}'), fn('GET', '/v1/things/special'), fn('POST', '/v1/things')]);

describe('the router', () => {
  test('names route and parameters as API Gateway does, parameters undecoded', () => {
    const { routeKey, pathParameters } = route('GET', '/v1/things/a%2Fb');
    expect([routeKey, pathParameters]).toEqual(['GET /v1/things/{name}', { name: 'a%2Fb' }]);
  });

  test('prefers a literal to a parameter', () => {
    expect(route('GET', '/v1/things/special').routeKey).toBe('GET /v1/things/special');
  });

  test('takes HEAD for GET', () => {
    expect(route('HEAD', '/v1/things/special').routeKey).toBe('GET /v1/things/special');
    expect(() => route('HEAD', '/v1/things')).toThrow('this path has POST');
  });

  test.each([
    { method: 'DELETE', path: '/v1/things', says: 'this path has POST' },
    { method: 'GET', path: '/v1/things/', says: 'openapi' },
    { method: 'GET', path: '/v1/things/a/b', says: 'openapi' },
  ])('refuses $method $path, saying what there is', ({ method, path, says }) => {
    expect(() => route(method, path)).toThrow(says);
  });
});
