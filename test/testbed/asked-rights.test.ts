import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { askedIn, keepUsedRights, placeOf, readUsedRights, rightsVariable } from './asked-rights.ts';

const event = (verb: string, resource: string, decision: string, code = 200, more: object = {}): string =>
  JSON.stringify({
    verb,
    requestReceivedTimestamp: '2026-01-01T00:00:10Z',
    user: { username: 'agent' },
    objectRef: { resource, ...more },
    responseStatus: { code },
    annotations: {
      'authorization.k8s.io/decision': decision,
      'authorization.k8s.io/reason':
        'RBAC: allowed by RoleBinding "one/demo" of ClusterRole "isthmus-agent" to ServiceAccount "agent/liqo"',
    },
  });

const folders: string[] = [];
const folder = async (): Promise<string> => {
  const made = await mkdtemp(path.join(os.tmpdir(), 'isthmus-rights-'));
  folders.push(made);
  return made;
};
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const made of folders.splice(0)) await rm(made, { recursive: true });
});

test('an apply that makes its object needs the right to create it, too', () => {
  const rights = (line: string) => askedIn(line).map(({ right }) => right);
  expect(rights(event('patch', 'pods', 'allow', 201, { subresource: 'status', apiGroup: 'x.io' }))).toEqual([
    'patch x.io/pods/status',
    'create x.io/pods/status',
  ]);
  expect(rights(event('patch', 'pods', 'allow', 200))).toEqual(['patch pods']);
  expect(rights(event('create', 'pods', 'allow', 201))).toEqual(['create pods']);
  expect(rights('')).toEqual([]);
});

test('what a server granted outlives its folder: each right once, with the role that gave it, and also when lines were cut off', async () => {
  const [dir, kept] = [await folder(), await folder()];
  const lines = [event('get', 'pods', 'allow'), event('get', 'pods', 'allow'), event('list', 'secrets', 'forbid', 403)];
  await writeFile(path.join(dir, 'audit-2026-01-01.log'), `${event('watch', 'nodes', 'allow')}\n`);
  const cut = event('delete', 'pods', 'allow').slice(0, 40);
  // The server was started again, and killed again.
  const log = [cut + event('list', 'pods', 'allow'), ...lines, cut].join('\n');
  await writeFile(path.join(dir, 'audit.log'), log);
  vi.stubEnv(rightsVariable, kept);
  await keepUsedRights(dir);
  await keepUsedRights(path.join(dir, 'none'));
  const { servers, used } = await readUsedRights(kept);
  expect(servers).toBe(1);
  expect(used).toEqual([
    { account: 'agent', role: 'isthmus-agent', right: 'get pods', place: 'cluster' },
    { account: 'agent', role: 'isthmus-agent', right: 'watch nodes', place: 'cluster' },
  ]);
});

test('a right was used in the whole cluster, in the namespace of the agent, in one of a peer, or elsewhere', () => {
  expect(['', 'liqo', 'liqo-tenant-milan', 'shop'].map(placeOf)).toEqual(['cluster', 'system', 'tenants', 'other']);
});
