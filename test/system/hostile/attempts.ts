/** What a hostile consumer tries with its two identities at its provider: requests of which none may be accepted. */
import type { KubeApi } from '#kube/model/types.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  customResourceDefinitions,
  deployments,
  endpointSlices,
  ingresses,
  leases,
  namespaces,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
  services,
  storageClasses,
  validatingWebhookConfigurations,
} from '#shared/domain/core-kinds.ts';
import type { ResourceType } from '#shared/domain/kube-object.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { type Attempt, apps, creating, foreignNamespaces, made, tenant, withMetadata } from './attempt.ts';
import { container } from './hosted-consumers.ts';
import { finalizerAttempts, leftoverAttempts, tokenAttempts } from './leftover-attempts.ts';
import { foreignPodAttempts, podAttempts } from './pod-attempts.ts';

const service = (what: string, spec: object, annotations: Record<string, string> = {}): Attempt => {
  const object = made(services, apps, 'drill', { spec: { ports: [{ port: 80 }], ...spec } });
  return creating('Services that reach too far', what, 'kubelet', services, withMetadata(object, { annotations }));
};
const serviceAttempts = (): Attempt[] => [
  ...['10.96.0.1', '192.0.2.1', '169.254.169.254'].map((ip) =>
    service(`external address ${ip}`, { externalIPs: [ip] }),
  ),
  service('an address of the load balancer', { type: 'LoadBalancer', loadBalancerIP: '192.0.2.7' }),
  service('a class of load balancer', { type: 'LoadBalancer', loadBalancerClass: 'internal.example/lb' }),
  ...['metadata.google.internal', 'kubernetes.default.svc', 'vault.liqo.svc.cluster.local', 'db.example.com'].map(
    (name) => service(`the name ${name}`, { type: 'ExternalName', externalName: name }),
  ),
  ...[
    'external-dns.alpha.kubernetes.io/hostname',
    'service.beta.kubernetes.io/aws-load-balancer-internal',
    'metallb.universe.tf/loadBalancerIPs',
    'networking.gke.io/load-balancer-type',
    'cert-manager.io/cluster-issuer',
    'traefik.ingress.kubernetes.io/service.serversscheme',
  ].map((key) => service(`annotation ${key}`, {}, { [key]: 'x' })),
];

const ingress = (what: string, spec: object, annotations: Record<string, string> = {}): Attempt =>
  creating(
    'Ingresses that take requests',
    what,
    'kubelet',
    ingresses,
    withMetadata(made(ingresses, apps, 'drill', { spec }), { annotations }),
  );
const backend = { service: { name: 's', port: { number: 80 } } };
const rules = (host?: string) => ({
  rules: [{ ...(host && { host }), http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
});
const ingressAttempts = (): Attempt[] => [
  ...['bank.example.com', '*.example.com', 'liqo.local', 'kubernetes.default.svc'].map((host) =>
    ingress(`host ${host}`, rules(host)),
  ),
  ingress('every host', rules()),
  ingress('a default backend', { defaultBackend: backend }),
  ingress('a certificate', { defaultBackend: backend, tls: [{ hosts: ['bank.example.com'], secretName: 's' }] }),
  ...[
    'configuration-snippet',
    'server-snippet',
    'auth-url',
    'mirror-target',
    'rewrite-target',
    'permanent-redirect',
  ].map((key) =>
    ingress(`annotation ${key}`, rules('bank.example.com'), { [`nginx.ingress.kubernetes.io/${key}`]: 'x' }),
  ),
];

const claim = (what: string, spec: object): Attempt => {
  const whole = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec };
  return creating(
    'claims of storage',
    what,
    'kubelet',
    persistentVolumeClaims,
    made(persistentVolumeClaims, apps, 'drill', { spec: whole }),
  );
};
const claimAttempts = (): Attempt[] => [
  claim('the default class, which is not offered', {}),
  claim('a class that is not offered', { storageClassName: 'secret' }),
  claim('a volume by name', { storageClassName: '', volumeName: 'pv-of-the-provider' }),
  claim('volumes by label', { storageClassName: '', selector: { matchLabels: { a: 'b' } } }),
  claim('data of a snapshot', {
    dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' },
  }),
];

/** Kinds that it writes in its own namespaces, in all others. */
const elsewhereAttempts = (): Attempt[] =>
  foreignNamespaces.flatMap((namespace) => {
    const kubelets: readonly (readonly [ResourceType, object])[] = [
      [shadowPods, { spec: { pod: { containers: [container] } } }],
      [configMaps, {}],
      [secrets, {}],
      [services, { spec: { ports: [{ port: 80 }] } }],
      [pods, { spec: { containers: [container] } }],
    ];
    const controlPlanes: readonly (readonly [ResourceType, object])[] = [
      [resourceSlices, { spec: { class: 'default', consumerClusterID: 'cons' } }],
      [namespaceMaps, { spec: { desiredMapping: { a: 'kube-system' } } }],
      [renews, { spec: {} }],
    ];
    const about = 'writes into other namespaces';
    return [
      ...kubelets.map(([type, more]) =>
        creating(about, `${type.kind} in ${namespace}`, 'kubelet', type, made(type, namespace, 'drill', more)),
      ),
      ...controlPlanes.map(([type, more]) =>
        creating(about, `${type.kind} in ${namespace}`, 'controlPlane', type, made(type, namespace, 'drill', more)),
      ),
    ];
  });
const readingAttempts = (): Attempt[] =>
  [...foreignNamespaces, tenant].flatMap((namespace) =>
    ([secrets, configMaps, pods] as readonly ResourceType[]).map((type) => ({
      about: 'reads of other namespaces',
      what: `${type.plural} of ${namespace}`,
      who: 'kubelet' as const,
      act: (api: KubeApi) => api.list(type, { namespace }),
    })),
  );

const rbac = 'rbac.authorization.k8s.io';
const admin = {
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'cluster-admin' },
  subjects: [{ apiGroup: rbac, kind: 'User', name: 'slice-cons' }],
};
/** What would give it more than it has. */
const climbingAttempts = (): Attempt[] => {
  const own: readonly (readonly [ResourceType, string | undefined, object])[] = [
    [roles, apps, { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] }],
    [roleBindings, apps, admin],
    [roleBindings, tenant, admin],
    [serviceAccounts, apps, {}],
    [
      deployments,
      apps,
      {
        spec: {
          selector: { matchLabels: { a: 'b' } },
          template: { metadata: { labels: { a: 'b' } }, spec: { containers: [container] } },
        },
      },
    ],
    [endpointSlices, apps, { addressType: 'IPv4', endpoints: [{ addresses: ['10.0.0.1'] }], ports: [] }],
    [leases, apps, {}],
    [quotas, tenant, { spec: { user: 'slice-cons', resources: { cpu: '9999' } } }],
    [tenants, tenant, { spec: { clusterID: 'cons' } }],
    [identities, tenant, { spec: { clusterID: 'cons', type: 'ControlPlane', authParams: {} } }],
    [virtualNodes, tenant, { spec: { clusterID: 'cons' } }],
    [
      networkKinds.configurations as ResourceType,
      tenant,
      { spec: { remote: { cidr: { pod: ['0.0.0.0/0'], external: ['0.0.0.0/0'] } } } },
    ],
    [networkKinds.publicKeys as ResourceType, tenant, { spec: { publicKey: Buffer.alloc(32).toString('base64') } }],
    [secrets, tenant, {}],
    [clusterRoles, undefined, { rules: [] }],
    [clusterRoleBindings, undefined, admin],
    [namespaces, undefined, {}],
    [nodes, undefined, {}],
    [
      persistentVolumes,
      undefined,
      { spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/' } } },
    ],
    [storageClasses, undefined, { provisioner: 'x' }],
    [validatingWebhookConfigurations, undefined, { webhooks: [] }],
    [customResourceDefinitions, undefined, { spec: {} }],
    [peeringPolicies, undefined, { spec: {} }],
    [trustedPeers, undefined, { spec: { consent: ['provider'] } }],
  ];
  return own.flatMap(([type, namespace, more]) =>
    (['kubelet', 'controlPlane'] as const).map((who) =>
      creating(
        'rights and objects of the provider',
        `${type.kind}${namespace ? ` in ${namespace}` : ''}`,
        who,
        type,
        made(type, namespace, 'drill', more),
      ),
    ),
  );
};

export const allAttempts = (): readonly Attempt[] => [
  ...podAttempts(),
  ...foreignPodAttempts(),
  ...serviceAttempts(),
  ...ingressAttempts(),
  ...claimAttempts(),
  ...finalizerAttempts(),
  ...leftoverAttempts(),
  ...tokenAttempts(),
  ...elsewhereAttempts(),
  ...readingAttempts(),
  ...climbingAttempts(),
];
