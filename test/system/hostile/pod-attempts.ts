/** Pods by which a hostile consumer tries to leave its sandbox, or to pass as another one. */
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { type Attempt, apps, creating } from './attempt.ts';
import { container, origin, shadow } from './hosted-consumers.ts';

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

export function podAttempts(): Attempt[] {
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
export const foreignPodAttempts = (): Attempt[] => [
  labelled('another consumer', origin('other')),
  labelled('the provider', origin('here')),
];
