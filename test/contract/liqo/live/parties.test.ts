import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { pods, roleBindings, secrets } from '#shared/domain/core-kinds.ts';
import type { ResourceType } from '#shared/domain/kube-object.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { type Write, writesIn } from './audit.ts';
import type { Place, Seen } from './capture.ts';
import { stepsBetween } from './parties.ts';

const agent = 'system:serviceaccount:liqo:isthmus-agent';
const manager = 'system:serviceaccount:liqo:liqo-controller-manager';
let second = 0;

function seen(at: Place, user: string, program: string, type: ResourceType, name: string, groups: string[] = []): Seen {
  const namespace = at === 'milan' ? 'liqo-tenant-rome' : 'liqo-tenant-milan';
  const object = { metadata: { name, namespace } };
  const time = `2026-01-01T00:00:${String(second++).padStart(2, '0')}Z`;
  const write: Write = {
    ...{ user, groups, program, verb: 'create', type, namespace, name, subresource: undefined },
    ...{ request: object, response: object, at: time, answeredAt: time },
  };
  return { at, write };
}

const brief = (all: readonly Seen[], isthmusIs: 'consumer' | 'provider') =>
  stepsBetween(all, isthmusIs, {}).map(({ by, at, create, expect: wanted }) => [
    by,
    at,
    (create ?? wanted)?.metadata.name,
  ]);

test('of an Isthmus that provides, what the peer writes there by its certificates, and what came of it', () => {
  const all = [
    seen('milan', 'rome', 'crd-replicator', renews, 'by the control plane'),
    seen('milan', 'milan-1234', 'virtual-kubelet', renews, 'by a slice', ['rome']),
    seen('milan', 'admin', 'liqoctl', renews, 'by its administrator'),
    seen('milan', 'admin', 'kubectl', renews, 'by a user'),
    seen('milan', agent, 'isthmus', quotas, 'by isthmus'),
    seen('milan', agent, 'isthmus', roleBindings, 'isthmus-agent-tenant'),
    seen('milan', agent, 'isthmus', secrets, 'liqo-remote-certificate'),
    seen('milan', 'system:node:milan-1', 'kubelet', pods, 'web'),
    seen('milan', 'system:kube-scheduler', 'kube-scheduler', pods, 'other'),
    seen('rome', manager, 'liqo-controller-manager', renews, 'at home'),
  ];
  const expected = [
    ['crd-replicator', 'milan', 'by the control plane'],
    ['virtual-kubelet', 'milan', 'by a slice'],
    ['liqoctl', 'milan', 'by its administrator'],
    ['isthmus', 'milan', 'by isthmus'],
    ['kubelet', 'milan', 'web'],
  ];
  expect(brief(all, 'provider')).toEqual(expected);
  expect(brief(all.toReversed(), 'provider')).toEqual(expected);
});

test('rights that end at about the time of the last write that was allowed end after it', () => {
  const end = seen('milan', agent, 'isthmus', roleBindings, 'liqo-binding-x');
  const gone: Seen = { ...end, write: { ...end.write, verb: 'delete', response: { kind: 'Status' } as never } };
  const steps = stepsBetween([end, gone, seen('milan', 'rome', 'crd-replicator', renews, 'r')], 'provider', {});
  expect(steps.map((step) => [step.by, step.absent !== undefined])).toEqual([
    ['crd-replicator', false],
    ['isthmus', true],
  ]);
});

test('of an Isthmus that consumes, everything at home and what it can see of the provider', () => {
  const all = [
    seen('rome', 'milan', 'isthmus', renews, 'at the provider'),
    seen('rome', 'rome-1234', 'isthmus', renews, 'of a slice', ['milan']),
    seen('rome', manager, 'liqo-controller-manager', renews, 'by liqo'),
    seen('rome', manager, 'liqo-controller-manager', secrets, 'liqo-nonce'),
    seen('rome', manager, 'liqo-controller-manager', secrets, 'liqo-remote-certificate'),
    seen('rome', manager, 'liqo-controller-manager', quotas, 'of the provider'),
    seen('rome', 'admin', 'kubectl', renews, 'by a user there'),
    seen('milan', 'admin', 'kubectl', renews, 'by a user'),
    seen('milan', agent, 'isthmus', secrets, 'kubeconfig-controlplane-rome'),
  ];
  expect(brief(all, 'consumer')).toEqual([
    ['isthmus', 'rome', 'at the provider'],
    ['isthmus', 'rome', 'of a slice'],
    ['liqo-controller-manager', 'rome', 'by liqo'],
    ['liqo-controller-manager', 'rome', 'liqo-nonce'],
    ['user', 'milan', 'by a user'],
    ['isthmus', 'milan', 'kubeconfig-controlplane-rome'],
  ]);
});

test('a log of which the server is writing a line is read up to that line, and a namespace is in none', async () => {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-audit-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const line = JSON.stringify({
    level: 'RequestResponse',
    stage: 'ResponseComplete',
    verb: 'delete',
    user: { username: 'admin' },
    objectRef: { resource: 'namespaces', namespace: 'shop', name: 'shop' },
    responseStatus: { code: 200 },
    requestReceivedTimestamp: '2026-01-01T00:00:00Z',
    stageTimestamp: '2026-01-01T00:00:00Z',
  });
  await writeFile(path.join(dir, 'audit.log'), `${line}\n${line.slice(0, 40)}`);
  expect((await writesIn(path.join(dir, 'audit.log'))).map(({ namespace, name }) => [namespace, name])).toEqual([
    ['', 'shop'],
  ]);
});
