import { afterAll, beforeAll, expect, test } from 'vitest';
import { configMaps, events, nodes } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { createKubeApi } from '../http/client.ts';
import { connectKubeconfig } from '../http/kubeconfig.ts';
import type { KubeApi } from '../model/types.ts';
import { createEventRecorder } from './event-recorder.ts';

const patience = { timeout: 60_000, interval: 20 };
const author = { reportingController: 'isthmus-test', reportingInstance: 'isthmus-test-0' };
let server: ApiServer;
let api: KubeApi;
beforeAll(async () => {
  server = await leaseApiServer();
  api = createKubeApi(await connectKubeconfig(server.kubeconfig), { clock: systemClock, log: silentLog });
}, 900_000);
afterAll(async () => await server?.stop());

const about = (reason: string) =>
  api
    .list(events, { namespace: 'default' })
    .then((all) => all.filter((event) => event.reason === reason) as (KubeObject & Record<string, unknown>)[]);

function recorder() {
  const clock = new ManualClock(Date.now());
  const stop = new AbortController();
  return { clock, stop, recorder: createEventRecorder({ api, clock, log: silentLog }, author, stop.signal) };
}

test('an event names its author, its object and its reason, also about objects without a namespace', async () => {
  const { recorder: record, stop } = recorder();
  const made = await api.create(configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name: 'subject' },
  });
  const node = await api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'milan' } });
  record.emit(made, 'Warning', 'Refused', `too large: ${'ü'.repeat(2_000)}`);
  record.emit(node, 'Normal', 'Joined', 'milan is here');
  await expect.poll(() => about('Refused').then((all) => all.length), patience).toBe(1);
  expect((await about('Refused'))[0]).toMatchObject({
    ...author,
    type: 'Warning',
    note: expect.stringMatching(/^too large: ü+…$/),
    regarding: { kind: 'ConfigMap', namespace: 'default', name: 'subject', uid: made.metadata.uid },
  });
  await expect.poll(() => about('Joined').then((all) => all.length), patience).toBe(1);
  stop.abort();
});

test('the same event again is one series, written at most each 30 s', async () => {
  const { recorder: record, clock, stop } = recorder();
  const made = await api.create(configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name: 'noisy' },
  });
  for (let i = 0; i < 100; i++) record.emit(made, 'Normal', 'Again', 'the same');
  await expect.poll(() => about('Again').then((all) => all.length), patience).toBe(1);
  await expect
    .poll(async () => {
      clock.advance(31_000);
      return (await about('Again'))[0]?.series;
    }, patience)
    .toMatchObject({ count: 100 });
  expect(await about('Again')).toHaveLength(1);
  clock.advance(11 * 60_000);
  record.emit(made, 'Normal', 'Again', 'the same');
  await expect.poll(() => about('Again').then((all) => all.length), patience).toBe(2);
  stop.abort();
});
