import type { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { NodeAccess } from './caller.ts';

const withoutCertificate = { getPeerCertificate: () => ({}) } as TLSSocket;

test('the cluster is asked about all that it said of a caller, for an authorizer may go by what a token is limited to', async () => {
  const user = { username: 'prometheus', uid: 'u1', groups: ['monitoring'], extra: { 'example.com/scopes': ['logs'] } };
  const asked: unknown[] = [];
  const api = {
    postPath: async (path: string, { spec }: { spec: unknown }) => {
      if (path.endsWith('tokenreviews')) return { status: { authenticated: true, user } };
      asked.push(spec);
      return { status: { allowed: true } };
    },
  } as unknown as KubeApi;
  const access = new NodeAccess({ api, clock: new ManualClock() });
  const caller = await access.callerOf(withoutCertificate, 'Bearer secret');
  await access.require(caller, 'milan', 'GET', '/metrics/resource');
  const resourceAttributes = { verb: 'get', version: 'v1', resource: 'nodes', subresource: 'metrics', name: 'milan' };
  const { username, ...rest } = user;
  expect(asked).toEqual([{ user: username, ...rest, resourceAttributes }]);
});

test('two callers of one name with different limits are judged separately', async () => {
  const api = {
    postPath: async (_: string, { spec }: { spec: { extra?: Record<string, string[]> } }) => ({
      status: { allowed: spec.extra?.scopes?.[0] === 'all' },
    }),
  } as unknown as KubeApi;
  const access = new NodeAccess({ api, clock: new ManualClock() });
  const caller = (scope: string) => ({ user: 'ci', groups: [], extra: { scopes: [scope] } });
  const ask = (scope: string) => access.require(caller(scope), 'milan', 'GET', '/pods');
  await expect(ask('all')).resolves.toBeUndefined();
  await expect(ask('none')).rejects.toMatchObject({ code: 'forbidden' });
});
