/** Certificates that live for seconds, between two clusters: renewed while both agents run, and healed after a separation that outlives them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lifetimeOf } from '#agent/pki/certificate.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { name } from '#shared/domain/liqo-keys.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { TestApiServer } from '#test/harness/kube-apiserver.ts';
import { peer, presentIdentity, removePeering } from './broker-part.ts';
import { type Pair, startOwnPair } from './clusters.ts';

let pair: Pair<TestApiServer>;
beforeAll(async () => {
  pair = await startOwnPair();
}, 900_000);
afterAll(async () => await pair?.stop());

/** A third of it is left for a renewal, also on a loaded machine. */
const lifeSeconds = 24;

test('certificates of seconds are renewed without a gap, and a separation that outlives them heals by itself', async () => {
  await pair.provider.server.restartControllerManager([`--cluster-signing-duration=${lifeSeconds}s`]);
  await peer(pair);
  const at = { namespace: name.tenantNamespace('milan'), name: 'milan' };
  const node = (await pair.consumer.api.get(virtualNodes, at))?.metadata.uid;
  const certificateIn = async (identity: string): Promise<string> => {
    const secret = await pair.consumer.api.get(secrets, { ...at, name: name.kubeconfigSecret(identity) });
    const text = Buffer.from(secret?.data?.kubeconfig ?? '', 'base64').toString();
    return fromBase64(/client-certificate-data: "?([^"\s]+)/.exec(text)?.[1] ?? '');
  };
  const both = ['controlplane-milan', 'resourceslice-milan'];
  const leftMs = async () =>
    (await Promise.all(both.map(certificateIn))).map((pem) => lifetimeOf(pem).notAfterMs - Date.now());
  const grant = async (cpu: string) => {
    await pair.consumer.api.mergePatch(resourceSlices, at, { spec: { resources: { cpu } } });
    const granted = async () => (await pair.consumer.api.get(virtualNodes, at))?.spec.resourceQuota?.hard?.cpu === cpu;
    await eventually(`${cpu} CPU granted`, granted, { withinMs: 30_000 });
  };
  const first = await Promise.all(both.map(certificateIn));
  const gaps: number[] = [];
  await eventually(
    'both certificates to be renewed',
    async () => {
      gaps.push(...(await leftMs()).filter((ms) => ms <= 0));
      const now = await Promise.all(both.map(certificateIn));
      return now.every((certificate, i) => certificate !== first[i]);
    },
    { withinMs: 60_000 },
  );
  expect(gaps).toEqual([]);
  await grant('1');
  await pair.consumer.stopAgent();
  await eventually('both to expire', async () => (await leftMs()).every((ms) => ms < 0), { withinMs: 60_000 });
  await pair.consumer.startAgent();
  await eventually('the consumer to say what has ended', async () => {
    const output = (await pair.consumer.api.get(foreignClusters, { name: 'milan' }))?.status?.conditions;
    return output?.some(
      ({ reason, message }) => reason === 'CertificateExpired' && message?.includes('liqoctl authenticate'),
    );
  });
  // What the broker had told to both agents all along.
  await presentIdentity(pair);
  await grant('3');
  expect((await pair.consumer.api.get(virtualNodes, at))?.metadata.uid).toBe(node);
  await pair.provider.server.restartControllerManager([]);
  await removePeering(pair);
}, 180_000);
