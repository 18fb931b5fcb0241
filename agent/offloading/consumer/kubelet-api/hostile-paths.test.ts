/** Request targets of hostile callers of a virtual node's kubelet API, against a model of what they may reach at the provider. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countOf } from '#test/harness/cases.ts';
import { slowest } from '#test/harness/slowest.ts';
import { providerPath, routeOf, subresourcesOf } from './routes.ts';

const runs = countOf(100_000, 2_000);

const words = ['exec', 'attach', 'portForward', 'containerLogs', 'pods', 'runningpods', 'metrics', 'stats', 'healthz'];
const segment = fc.oneof(
  fc.constantFrom(...words, 'demo', 'web', 'app', 'resource', 'summary'),
  fc.constantFrom('..', '.', '%2e%2e', '.%2E', '%2f', 'a%2Fb', '%00', '%', '%zz', '%70ods', '__proto__', 'constructor'),
  fc.constantFrom('\\\\', '%5c', ';', '@evil', 'evil:443', 'http:', '', 'a?b', 'a#b', '%3F', 'x'.repeat(2000)),
  fc.string({ maxLength: 8 }),
);
const key = fc.constantFrom('command', 'container', 'input', 'tty', 'port', 'follow', 'tailLines', '__proto__', 'x');
const value = fc.oneof(
  fc.constantFrom('1', 'true', '../..', 'a&container=b', '\r\nHost: x'),
  fc.string({ maxLength: 8 }),
);
const query = fc
  .array(fc.tuple(key, value, fc.boolean()), { maxLength: 6 })
  .map((pairs) => pairs.map(([k, v, raw]) => `${k}=${raw ? v : encodeURIComponent(v)}`).join('&'));
const target = fc
  .tuple(fc.constantFrom('/', '/', '/', '//', 'http://evil/', '', '\\\\'), fc.array(segment, { maxLength: 6 }), query)
  .map(([start, segments, asked]) => `${start}${segments.join('/')}${asked === '' ? '' : `?${asked}`}`)
  // The server refuses the others before it asks for a route.
  .filter((url) => URL.canParse(url, 'https://kubelet'));
const method = fc.constantFrom('GET', 'POST', 'HEAD', 'PUT', 'DELETE', 'OPTIONS');

const name = '[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?';
const path = new RegExp(`^/api/v1/namespaces/rns/pods/(${name})/(exec|attach|portforward|log)$`);
const parameters: Readonly<Record<string, readonly string[]>> = {
  exec: ['command', 'container', 'stdin', 'stdout', 'stderr', 'tty'],
  attach: ['container', 'stdin', 'stdout', 'stderr', 'tty'],
  portforward: ['ports'],
  log: [
    'container',
    'follow',
    'limitBytes',
    'previous',
    'sinceSeconds',
    'sinceTime',
    'stream',
    'tailLines',
    'timestamps',
  ],
};

test('what a target reaches at the provider is one subresource of one pod of the mapped namespace, with known parameters', () => {
  const watch = slowest('targets of the kubelet API');
  fc.assert(
    fc.property(method, target, (how, url) => {
      const route = watch(() => routeOf(how, url));
      const rights = subresourcesOf(url);
      // Streams, and all that a right on a part of the node does not cover, need the whole right.
      if (route.kind === 'stream') expect(rights).toEqual(['proxy']);
      if (route.kind === 'pods') expect(rights).toContain('proxy');
      if (how !== 'GET' && how !== 'POST') expect(route.kind).toBe('unknown');
      if (route.kind !== 'stream') return;
      const { pathname, searchParams, host } = new URL(providerPath(route, 'rns'), 'https://provider');
      const [, pod, verb = ''] = path.exec(pathname) ?? [];
      expect([host, pod]).toEqual(['provider', route.pod]);
      for (const parameter of searchParams.keys()) expect(parameters[verb]).toContain(parameter);
      expect(searchParams.getAll('container')).toEqual(route.container === undefined ? [] : [route.container]);
    }),
    { numRuns: runs },
  );
}, 900_000);
