/**
 * A consumer whose grant is large makes ever more ShadowPods, each of which is allowed: how long the provider's own pods and the pods of
 * another consumer take to be made meanwhile. `HOSTILE_PODS=10000` for the long run.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import { clusterRoles, pods } from '#shared/domain/core-kinds.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { guest, identity, inParallel, origin, shadow } from './hosted-consumers.ts';

const flood = Number(process.env.HOSTILE_PODS ?? 1_000);
const quietSamples = 20;

let under: WebhookCluster;
let admin: KubeApi;
let greedy: KubeApi;
let modest: KubeApi;
const stop = new AbortController();

beforeAll(async () => {
  under = await startWebhookCluster();
  admin = under.cluster.api;
  for (const role of remoteRoles()) await admin.create(clusterRoles, role);
  const resources = { cpu: '1000', memory: '1000Gi' };
  for (const consumer of ['cons', 'other']) await guest(under, { consumer, slice: `slice-${consumer}`, resources });
  greedy = await identity(under, ['slice-cons', 'cons'], stop.signal);
  modest = await identity(under, ['slice-other', 'other'], stop.signal);
  for (const [api, consumer] of [
    [greedy, 'cons'],
    [modest, 'other'],
  ] as const)
    await until(() => api.list(shadowPods, { namespace: `apps-${consumer}` }));
}, 900_000);
afterAll(async () => {
  stop.abort();
  await under?.stop();
});

interface Sample {
  /** Until the API server has taken a pod of the provider's own. */
  readonly ownMs: number;
  /** Until the pod of another consumer's ShadowPod is there. */
  readonly otherMs: number;
}

async function sample(name: string): Promise<Sample> {
  const startedAt = performance.now();
  await admin.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'plain', name },
    spec: { containers: [{ name: 'app', image: 'app:1' }] },
  } as never);
  const ownMs = performance.now() - startedAt;
  const between = performance.now();
  await modest.create(shadowPods, shadow('apps-other', name, undefined, origin('other')));
  await until(async () => expect(await admin.get(pods, { namespace: 'apps-other', name })).toBeDefined());
  return { ownMs, otherMs: performance.now() - between };
}

function reported(samples: readonly Sample[], what: keyof Sample): string {
  const all = samples.map((one) => one[what]).sort((one, other) => one - other);
  const at = (part: number): number => Math.round(all[Math.min(all.length - 1, Math.floor(part * all.length))] ?? 0);
  return `${at(0.5)} ms (median), ${at(0.95)} ms (95 %), ${at(1)} ms (longest)`;
}

const ownMiB = (): number =>
  Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0) / 1_024);

test(`while one consumer makes ${flood} pods, the provider's own pods and those of another consumer are made in turn with them`, async () => {
  const before: Sample[] = [];
  for (let i = 0; i < quietSamples; i++) before.push(await sample(`before-${i}`));
  const miB = ownMiB();
  const startedAt = performance.now();
  let over = false;
  const flooding = inParallel(
    flood,
    async (i) => void (await greedy.create(shadowPods, shadow('apps-cons', `many-${i}`))),
  );
  const flooded = flooding
    .then(() => until(async () => expect(await podsOfGreedy()).toBe(flood)))
    .finally(() => {
      over = true;
    });
  const during: Sample[] = [];
  for (let i = 0; !over; i++) {
    during.push(await sample(`during-${i}`));
    await systemClock.sleep(100);
  }
  await flooded;
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
  console.log(
    [
      `${flood} ShadowPods of one consumer and their pods made in ${seconds} s, ${during.length} samples meanwhile; agent and callers ${miB} MiB before, ${ownMiB()} MiB after`,
      `the provider's own pods: ${reported(before, 'ownMs')} before, ${reported(during, 'ownMs')} meanwhile`,
      `pods of another consumer: ${reported(before, 'otherMs')} before, ${reported(during, 'otherMs')} meanwhile`,
    ].join('\n'),
  );
  // In turn with the flood, and not behind it: measured against the flood itself, since machines differ.
  expect(during.length).toBeGreaterThan(10);
  for (const what of ['ownMs', 'otherMs'] as const)
    expect(Math.max(...during.map((one) => one[what])), what).toBeLessThan((seconds * 1_000) / 2);
});

const podsOfGreedy = async (): Promise<number> => {
  const { metadata, items } = JSON.parse(await admin.getPath('/api/v1/namespaces/apps-cons/pods?limit=1')) as {
    metadata: { remainingItemCount?: number };
    items: readonly unknown[];
  };
  return items.length + (metadata.remainingItemCount ?? 0);
};
