/** What a hostile consumer tries in order to leave something behind at its provider, or to keep it from going. */
import type { KubeApi } from '#kube/model/types.ts';
import { configMaps, ingresses, persistentVolumeClaims, secrets, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { type Attempt, apps, creating, made, tenant, withMetadata } from './attempt.ts';
import { container, origin } from './hosted-consumers.ts';

const copyLabels = {
  'liqo.io/replicated': 'true',
  'liqo.io/replication': 'false',
  'liqo.io/originID': 'cons',
  'liqo.io/remote-cluster-id': 'cons',
};
/** A copy of an object of its own, as its control plane writes it. */
const copy = (type: ResourceType, name: string, spec: object, metadata: object = {}): KubeObject =>
  withMetadata(made(type, tenant, name, { spec }), { labels: copyLabels, ...metadata });
const copies: readonly (readonly [ResourceType, object])[] = [
  [resourceSlices, { class: 'default', consumerClusterID: 'cons' }],
  [namespaceMaps, { desiredMapping: {} }],
  [renews, { consumerClusterID: 'cons', identityType: 'ControlPlane' }],
];

/** Of every kind that it may write. */
export const finalizerAttempts = (): Attempt[] => {
  const about = 'finalizers that keep a namespace';
  const finalizers = ['example.com/stay'];
  const storage = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  const ofGuests: readonly (readonly [ResourceType, object])[] = [
    [configMaps, {}],
    [secrets, {}],
    [services, { spec: { ports: [{ port: 80 }] } }],
    [persistentVolumeClaims, { spec: storage }],
    [ingresses, { spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } } }],
    [shadowPods, { spec: { pod: { containers: [container] } } }],
    [shadowEndpointSlices, { spec: { template: { addressType: 'IPv4', endpoints: [], ports: [] } } }],
  ];
  return [
    ...ofGuests.map(([type, more]) => {
      const object = made(type, apps, 'stays', more);
      const stuck = withMetadata(object, { labels: origin('cons'), finalizers });
      return creating(about, type.kind, 'kubelet', type, stuck);
    }),
    ...copies.map(([type, spec]) =>
      creating(about, type.kind, 'controlPlane', type, copy(type, 'stays', spec, { finalizers })),
    ),
  ];
};

/** What the provider cleans up by, and what is owned by objects of the consumer. */
export const leftoverAttempts = (): Attempt[] => {
  const about = 'copies that leave something behind';
  const here = { namespace: tenant, name: 'here' };
  return [
    ...copies.map(([type, spec]) =>
      creating(
        about,
        `${type.kind} that orphans`,
        'controlPlane',
        type,
        copy(type, 'leaves', spec, { finalizers: ['orphan'] }),
      ),
    ),
    ...([resourceSlices, namespaceMaps] as readonly ResourceType[]).map((type) => ({
      about,
      what: `${type.kind} whose deletion orphans`,
      who: 'controlPlane' as const,
      act: (api: KubeApi) => api.delete(type, here, { propagationPolicy: 'Orphan' }),
    })),
    {
      about,
      what: 'NamespaceMap without the finalizer of the provider',
      who: 'controlPlane',
      act: (api) => api.mergePatch(namespaceMaps, here, { metadata: { finalizers: [] } }),
    },
  ];
};

export const tokenAttempts = (): Attempt[] =>
  ['default', 'deployer'].map((account) =>
    creating(
      'tokens of accounts of the provider',
      account,
      'kubelet',
      secrets,
      withMetadata(made(secrets, apps, `token-${account}`, { type: 'kubernetes.io/service-account-token' }), {
        annotations: { 'kubernetes.io/service-account.name': account },
      }),
    ),
  );
