import { describe, expect, test } from 'vitest';
import { allow, type Verdict } from '#agent/admission/review.ts';
import type { RouteConfiguration, RouteRule } from '#shared/schema/liqo/route-configuration.ts';
import { validateRoutes } from './route-configuration.ts';

const textOf = (verdict: Verdict): string =>
  verdict.allowed ? (verdict.warnings ?? ['allowed']).join() : `${verdict.message} (${verdict.code})`;
const toPeer: RouteRule = { dst: '10.71.0.0/16', routes: [{ dst: '10.71.0.0/16', dev: 'eth0' }] };

const configuration = (
  rules: RouteRule[],
  { name = 'extra', table = 'extra', labels = { 'networking.liqo.io/route-category': 'fabric' } } = {},
): RouteConfiguration => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'RouteConfiguration',
  metadata: { name, namespace: 'liqo', labels },
  spec: { table: { name: table, rules } },
});

describe('a RouteConfiguration', () => {
  test('with distinct rules and destinations is accepted', () => {
    const good = [toPeer, { ...toPeer, iif: 'eth0' }, { fwmark: 7, priority: 200, routes: [] }];
    expect(validateRoutes(undefined, configuration(good), [])).toBe(allow);
  });

  test.each<[string, RouteRule[], RegExp]>([
    ['two equal rules', [toPeer, toPeer], /^spec\.table\.rules\[1\] is the same as spec\.table\.rules\[0\].*accepted/],
    [
      'one destination twice',
      [{ routes: [...toPeer.routes, ...toPeer.routes] }],
      /^spec\.table\.rules\[0\]\.routes\[1\]\.dst is 10\.71\.0\.0\/16: accepted is each destination once/,
    ],
    [
      'host bits',
      [{ dst: '10.71.0.1/16', routes: [] }],
      /rules\[0\]\.dst is 10\.71\.0\.1\/16: accepted is 10\.71\.0\.0\/16/,
    ],
    ['an interface that is a command', [{ iif: 'eth0 down', routes: [] }], /rules\[0\]\.iif is "eth0 down": accepted/],
    ['an interface of 16 letters', [{ routes: [{ dst: '10.0.0.0/8', dev: 'a'.repeat(16) }] }], /routes\[0\]\.dev is/],
    ['a negative mark', [{ fwmark: -1, routes: [] }], /fwmark is -1: accepted is 0 to/],
    ['priority 0', [{ priority: 0, routes: [] }], /priority is 0: accepted is 1 to/],
  ])('with %s is refused', (_, rules, message) => {
    expect(textOf(validateRoutes(undefined, configuration(rules), []))).toMatch(message);
  });

  test('keeps the name of its table, and shares it with none for the same target', () => {
    const mine = configuration([toPeer]);
    expect(textOf(validateRoutes(mine, configuration([toPeer], { table: 'other' }), []))).toMatch(
      /immutable \(extra, not other\)/,
    );
    const second = configuration([toPeer], { name: 'second' });
    expect(textOf(validateRoutes(undefined, second, [mine]))).toMatch(
      /that of RouteConfiguration liqo\/extra.*already_exists/,
    );
    const elsewhere = configuration([toPeer], {
      name: 'second',
      labels: { 'networking.liqo.io/route-category': 'gateway' },
    });
    expect(validateRoutes(undefined, elsewhere, [mine])).toBe(allow);
  });

  test('that no node or gateway applies gets a warning', () => {
    expect(textOf(validateRoutes(undefined, configuration([toPeer], { labels: {} as never }), []))).toMatch(
      /no node or gateway applies this/,
    );
  });
});
