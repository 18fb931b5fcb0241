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
import { container, origin, shadow } from './hosted-consumers.ts';
import { finalizerAttempts, leftoverAttempts, tokenAttempts } from './leftover-attempts.ts';

const volumes: Readonly<Record<string, object>> = {
  nfs: { server: '10.0.0.1', path: '/' },
  iscsi: { targetPortal: '10.0.0.1:3260', iqn: 'iqn.2001-04.com.example:x', lun: 0 },
  rbd: { monitors: ['10.0.0.1:6789'], image: 'x' },
  cephfs: { monitors: ['10.0.0.1:6789'] },
  glusterfs: { endpoints: 'x', path: 'x' },
  flexVolume: { driver: 'any/driver' },
  gitRepo: { repository: 'http://10.0.0.1/x' },
  csi: { driver: 'any' },
  hostPath: { path: '/' },
  fc: { targetWWNs: ['50060e801049cfd1'], lun: 0 },
  azureDisk: { diskName: 'x', diskURI: 'x' },
  azureFile: { secretName: 'x', shareName: 'x' },
  awsElasticBlockStore: { volumeID: 'x' },
  gcePersistentDisk: { pdName: 'x' },
  cinder: { volumeID: 'x' },
  quobyte: { registry: '10.0.0.1:7861', volume: 'x' },
  scaleIO: { gateway: 'https://10.0.0.1', system: 'x', secretRef: { name: 'x' } },
  storageos: { volumeName: 'x' },
  portworxVolume: { volumeID: 'x' },
  vsphereVolume: { volumePath: 'x' },
  photonPersistentDisk: { pdID: 'x' },
  flocker: { datasetName: 'x' },
  image: { reference: 'app:1' },
};
const ofContainers: Readonly<Record<string, object>> = {
  privileged: { securityContext: { privileged: true } },
  'capability SYS_ADMIN': { securityContext: { capabilities: { add: ['SYS_ADMIN'] } } },
  'capability NET_ADMIN': { securityContext: { capabilities: { add: ['NET_ADMIN'] } } },
  'unmasked /proc': { securityContext: { procMount: 'Unmasked' } },
  'no seccomp': { securityContext: { seccompProfile: { type: 'Unconfined' } } },
  'no AppArmor': { securityContext: { appArmorProfile: { type: 'Unconfined' } } },
  'a type of SELinux': { securityContext: { seLinuxOptions: { type: 'spc_t' } } },
  'a user of SELinux': { securityContext: { seLinuxOptions: { user: 'system_u' } } },
  'a process of a Windows host': { securityContext: { windowsOptions: { hostProcess: true } } },
  'a port of the node': { ports: [{ containerPort: 80, hostPort: 80 }] },
  'devices beyond the quota': { resources: { limits: { 'example.com/gpu': 1 } } },
  'a negative request': { resources: { requests: { cpu: '-1' } } },
  'more than the quota': { resources: { requests: { cpu: '100000' } } },
};
const probe = { httpGet: { host: '169.254.169.254', port: 80 } };
const tcp = { tcpSocket: { host: '10.96.0.1', port: 443 } };
const ofApps: Readonly<Record<string, object>> = {
  'a liveness probe of metadata': { livenessProbe: probe },
  'a readiness probe of metadata': { readinessProbe: probe },
  'a startup probe of metadata': { startupProbe: probe },
  'a hook that asks metadata at start': { lifecycle: { postStart: probe } },
  'a hook that asks metadata at the end': { lifecycle: { preStop: probe } },
  'a probe of the API server': { livenessProbe: tcp },
};
const nodeTerm = (term: object) => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } },
});
const podTerm = (term: object) => ({
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname', ...term }],
  },
});
const projected = (source: object) => ({ name: 'v', projected: { sources: [source] } });
const ofPods: Readonly<Record<string, object>> = {
  'the network of the node': { hostNetwork: true },
  'the processes of the node': { hostPID: true },
  'the IPC of the node': { hostIPC: true },
  'a node by name': { nodeName: 'worker' },
  'the control plane by selector': { nodeSelector: { 'node-role.kubernetes.io/control-plane': '' } },
  'a node by field': {
    affinity: nodeTerm({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['worker'] }] }),
  },
  'the control plane by affinity': {
    affinity: nodeTerm({ matchExpressions: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }] }),
  },
  'to keep pods of kube-system away': { affinity: podTerm({ namespaces: ['kube-system'], labelSelector: {} }) },
  'to keep all pods away': { affinity: podTerm({ namespaceSelector: {}, labelSelector: {} }) },
  'another scheduler': { schedulerName: 'mine' },
  'a runtime class': { runtimeClassName: 'mine' },
  'a priority class': { priorityClassName: 'system-node-critical' },
  'a priority by number': { priority: 2_000_001_000 },
  'an unsafe sysctl': { securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } },
  'no seccomp': { securityContext: { seccompProfile: { type: 'Unconfined' } } },
  'a type of SELinux': { securityContext: { seLinuxOptions: { type: 'spc_t' } } },
  'containers that are none': { containers: ['no container'] },
  'an account of the provider': { serviceAccountName: 'deployer' },
  'an account by its former name': { serviceAccount: 'deployer' },
  'a token for another system': { volumes: [projected({ serviceAccountToken: { path: 't', audience: 'vault' } })] },
  'a certificate of a signer of the provider': {
    volumes: [projected({ podCertificate: { signerName: 'example.com/signer', keyType: 'ED25519' } })],
  },
  'more than the quota, behind a small request of the pod': {
    containers: [{ ...container, resources: { requests: { cpu: '100000', memory: '1Mi' } } }],
    resources: { requests: { cpu: '1m', memory: '1Mi' } },
  },
};

function podAttempts(): Attempt[] {
  const about = 'pods that leave the sandbox';
  let serial = 0;
  const pod = (what: string, spec: object): Attempt =>
    creating(
      about,
      what,
      'kubelet',
      shadowPods,
      shadow(apps, `drill-${serial++}`, { containers: [container], ...spec }),
    );
  return [
    ...Object.entries(volumes).map(([type, source]) =>
      pod(`volume ${type}`, { volumes: [{ name: 'v', [type]: source }] }),
    ),
    ...Object.entries(ofContainers).flatMap(([what, more]) => [
      pod(what, { containers: [{ ...container, ...more }] }),
      pod(`${what}, in an init container`, { initContainers: [{ ...container, name: 'init', ...more }] }),
    ]),
    ...Object.entries(ofApps).map(([what, more]) => pod(what, { containers: [{ ...container, ...more }] })),
    ...Object.entries(ofPods).map(([what, more]) => pod(what, more)),
  ];
}

const labelled = (what: string, labels: Record<string, string>): Attempt =>
  creating(
    'pods in another name',
    what,
    'kubelet',
    shadowPods,
    shadow(apps, `as-${what.replaceAll(/\W/g, '-')}`, undefined, labels),
  );

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
  labelled('another consumer', origin('other')),
  labelled('the provider', origin('here')),
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
