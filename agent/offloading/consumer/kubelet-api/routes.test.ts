import { expect, test } from 'vitest';
import { accessVerbOf, providerPath, routeOf, subresourcesOf } from './routes.ts';

test.each([
  {
    method: 'POST',
    url: '/exec/demo/web/app?command=sh&command=-c&command=a%20b&input=1&output=1&error=1&tty=1',
    path: '/api/v1/namespaces/rns/pods/web/exec?command=sh&command=-c&command=a+b&stdin=true&stdout=true&stderr=true&tty=true&container=app',
  },
  {
    method: 'GET',
    url: '/exec/demo/web/app?command=id&output=1&container=other',
    path: '/api/v1/namespaces/rns/pods/web/exec?command=id&stdout=true&container=app',
  },
  {
    method: 'POST',
    url: '/exec/demo/web/0b1c/app?command=id',
    path: '/api/v1/namespaces/rns/pods/web/exec?command=id&container=app',
  },
  {
    method: 'POST',
    url: '/attach/demo/web/app?output=1&command=id',
    path: '/api/v1/namespaces/rns/pods/web/attach?stdout=true&container=app',
  },
  { method: 'POST', url: '/portForward/demo/web', path: '/api/v1/namespaces/rns/pods/web/portforward' },
  {
    method: 'GET',
    url: '/portForward/demo/web?port=80&port=81',
    path: '/api/v1/namespaces/rns/pods/web/portforward?ports=80&ports=81',
  },
  {
    method: 'GET',
    url: '/containerLogs/demo/web/app?tailLines=0&follow=true&sinceTime=2026-01-01T00%3A00%3A00Z&evil=1',
    path: '/api/v1/namespaces/rns/pods/web/log?tailLines=0&follow=true&sinceTime=2026-01-01T00%3A00%3A00Z&container=app',
  },
])('$method $url is $path at the provider', ({ method, url, path }) => {
  const route = routeOf(method, url);
  if (route.kind !== 'stream') throw new Error(`got ${route.kind}`);
  expect(providerPath(route, 'rns')).toBe(path);
});

test.each([
  { method: 'GET', url: '/healthz', kind: 'healthz' },
  { method: 'GET', url: '/pods', kind: 'pods' },
  { method: 'GET', url: '/runningpods/', kind: 'pods' },
  { method: 'GET', url: '/stats/summary', kind: 'usage' },
  { method: 'GET', url: '/metrics', kind: 'usage' },
  { method: 'GET', url: '/metrics/resource?x=1', kind: 'usage' },
  { method: 'GET', url: '/metrics/cadvisor', kind: 'usage' },
  { method: 'GET', url: '/metrics/other', kind: 'unknown' },
  { method: 'GET', url: '/stats/demo/web/app', kind: 'unknown' },
  { method: 'POST', url: '/metrics/resource', kind: 'unknown' },
  { method: 'DELETE', url: '/pods', kind: 'unknown' },
  { method: 'POST', url: '/containerLogs/demo/web/app', kind: 'unknown' },
  { method: 'POST', url: '/exec/demo/web', kind: 'unknown' },
  { method: 'POST', url: '/exec/demo/..%2fkube-system/app', kind: 'unknown' },
  { method: 'POST', url: '/exec/demo/web/app%2f..', kind: 'unknown' },
  { method: 'POST', url: '/portForward/demo/web/app/more/still', kind: 'unknown' },
  { method: 'GET', url: '/%zz', kind: 'unknown' },
  { method: 'GET', url: '/__proto__/a/b', kind: 'unknown' },
  { method: 'POST', url: '/run/demo/web/app?cmd=id', kind: 'unknown' },
])('$method $url is taken as $kind', ({ method, url, kind }) => {
  expect(routeOf(method, url).kind).toBe(kind);
});

test.each([
  { url: '/exec/a/b/c', want: ['proxy'] },
  { url: '/containerLogs/a/b/c', want: ['proxy'] },
  { url: '/stats/summary', want: ['stats'] },
  { url: '/metrics/cadvisor', want: ['metrics'] },
  { url: '/pods', want: ['pods', 'proxy'] },
  { url: '/healthz', want: ['healthz', 'proxy'] },
  { url: '//healthz', want: ['proxy'] },
])('$url needs one of $want', ({ url, want }) => {
  if (url !== '//healthz') expect(subresourcesOf(url)).toEqual(want);
  else expect(subresourcesOf(url).at(-1)).toBe('proxy');
});

test('methods become the verbs that the kubelet asks about', () => {
  expect(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map(accessVerbOf)).toEqual([
    'get',
    'get',
    'create',
    'update',
    'patch',
    'delete',
    'options',
  ]);
});
