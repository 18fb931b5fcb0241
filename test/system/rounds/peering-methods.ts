/** The ways to make a peering between two clusters of one broker, and for each the ways to end it. */
import { namespaces } from '#shared/domain/core-kinds.ts';
import { type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { peerings } from '#shared/schema/isthmus/peering.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { unoffloadNamespace } from '#test/e2e/liqoctl/offload.ts';
import { peer, unpeer } from '#test/e2e/liqoctl/peer.ts';
import type { Ground } from '../brokerless/ground.ts';
import { applyGuide, deleteGuide } from '../brokerless/guide.ts';
import { type ClusterName, clusterNames, consumer, provider } from '../whole-clusters/stage.ts';

export type Maker = 'broker' | 'Peering object' | 'manifests' | 'liqoctl';

export interface Way {
  readonly by: string;
  /** Asks for it; the clusters may go on after that. `seed`: of its random order, if it has one. */
  take(ground: Ground, seed: number): Promise<void>;
}

const pollMs = 100;
const both = (ground: Ground) => [ground.target(consumer, pollMs), ground.target(provider, pollMs)] as const;
const resources = { cpu: '2', memory: '2Gi', pods: '20' } as const;
const wish = { name: `to-${provider}` } as const;

export const makers: Readonly<Record<Maker, Way>> = {
  broker: {
    by: 'isthmus peer',
    async take({ stage }) {
      await stage.world.mustIsthmus('peer', consumer, provider, '--cpu', resources.cpu, '--memory', resources.memory);
    },
  },
  'Peering object': {
    by: 'a Peering object',
    async take({ stage }) {
      await stage.apply(consumer, {
        apiVersion: 'isthmus.dev/v1alpha1',
        kind: 'Peering',
        metadata: wish,
        spec: { provider, resources },
      } as KubeObject);
    },
  },
  manifests: { by: 'manifests', take: ({ stage, guide }, seed) => applyGuide(stage, guide, seed) },
  liqoctl: {
    by: 'liqoctl peer',
    async take(ground, seed) {
      await peer(...both(ground), { serviceType: 'NodePort', resources, inBand: seed % 2 === 0 });
    },
  },
};

const ofBroker: readonly Way[] = [
  {
    by: 'isthmus unpeer',
    async take({ stage }) {
      await stage.world.mustIsthmus('unpeer', consumer, provider);
    },
  },
  { by: 'liqoctl unpeer', take: liqoctlUnpeer },
  { by: "deleting the provider's Tenant", take: (ground) => deleteAll(ground, provider, tenants) },
  { by: "deleting the consumer's ResourceSlice", take: (ground) => deleteAll(ground, consumer, resourceSlices) },
  { by: "deleting the consumer's Identities", take: (ground) => deleteAll(ground, consumer, identities) },
];

const byNamespaces: Way = {
  by: 'deleting both tenant namespaces',
  async take(ground) {
    const { stage } = ground;
    await Promise.all(
      clusterNames.map(async (cluster) => {
        const api = stage.api(cluster);
        for (const found of await api.list(namespaces, { labelSelector: 'liqo.io/tenant-namespace' }))
          await api.delete(namespaces, refOf(found));
      }),
    );
    await takeBackOffloading(ground);
  },
};

/** Of those that a broker holds no object is deleted that it would only put back (docs/ownership.md). */
export const enders: Readonly<Record<Maker, readonly Way[]>> = {
  broker: ofBroker,
  'Peering object': [
    {
      by: 'deleting the Peering object',
      async take({ stage }) {
        await stage.api(consumer).delete(peerings, wish);
      },
    },
    ...ofBroker,
  ],
  manifests: [
    { by: 'deleting the manifests', take: ({ stage, guide }, seed) => deleteGuide(stage, guide, seed) },
    { by: 'liqoctl unpeer', take: liqoctlUnpeer },
    byNamespaces,
  ],
  liqoctl: [{ by: 'liqoctl unpeer', take: liqoctlUnpeer }, byNamespaces],
};

/** What stays of the asking, whichever way it ended: a Peering object that was ended elsewhere, says so. */
export async function tidyUp({ stage }: Ground): Promise<void> {
  await stage.api(consumer).delete(peerings, wish);
}

async function liqoctlUnpeer(ground: Ground): Promise<void> {
  await takeBackOffloading(ground);
  await unpeer(...both(ground), { deleteNamespaces: true });
}

/** The guide's last manifest, which is no part of the peering itself. */
async function takeBackOffloading(ground: Ground): Promise<void> {
  await unoffloadNamespace(ground.target(consumer, pollMs), 'demo');
}

async function deleteAll<T extends KubeObject>(
  { stage }: Ground,
  cluster: ClusterName,
  type: ResourceType<T>,
): Promise<void> {
  const api = stage.api(cluster);
  for (const found of await api.list(type)) await api.delete(type, refOf(found));
}
