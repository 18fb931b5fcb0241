/** What `--metrics` adds for scrapers of any kind: where processes listen, what they may ask, a role for scrapers, and Services. Pure. */
import type { ClusterRole, Deployment, Service } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName } from '#shared/domain/network-keys.ts';
import { installLabel } from './install-label.ts';

/** `open`: plain HTTP, to every caller. */
export const metricsAccess = ['authenticated', 'open'] as const;
export type MetricsAccess = (typeof metricsAccess)[number];

/** Of the containers. */
export const metricsPort = 'metrics';
/** On the Service of the controllers, so that its monitor finds it: node processes have a PodMonitor. */
export const metricsLabel = { 'isthmus.dev/metrics': 'true' } as const;
export const metricsReader = 'isthmus-metrics-reader';
export const accessEnv = 'ISTHMUS_METRICS_ACCESS';

type Env = NonNullable<NonNullable<NonNullable<Deployment['spec']>['template']['spec']>['containers'][number]['env']>;
type Rule = NonNullable<ClusterRole['rules']>[number];

/** `onHost`: at the pod's address only, which is the node's. */
export const metricsEnv = (access: MetricsAccess, port: number, onHost: boolean): Env => [
  { name: 'ISTHMUS_METRICS_PORT', value: String(port) },
  { name: accessEnv, value: access },
  ...(onHost ? [{ name: 'ISTHMUS_METRICS_HOST', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }] : []),
];

/** What a process needs to know its callers by. */
export const reviewRules = (): Rule[] => [
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
];

export function metricsManifests(access: MetricsAccess, hasNetwork: boolean): KubeObject[] {
  return [
    ...(access === 'authenticated' ? [reader()] : []),
    service('isthmus-agent-metrics', 'controller-manager'),
    ...(hasNetwork ? [service('isthmus-fabric-metrics', fabricName)] : []),
  ];
}

/** To be bound to the account of a scraper. */
const reader = (): ClusterRole => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: metricsReader, labels: { ...installLabel } },
  rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }],
});

/** Without an address of its own: each process is scraped. */
const service = (name: string, app: string): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    name,
    namespace: systemNamespace,
    labels: { ...installLabel, ...(app === fabricName ? {} : metricsLabel) },
  },
  spec: {
    clusterIP: 'None',
    selector: { ...installLabel, 'app.kubernetes.io/name': app },
    ports: [{ name: metricsPort, port: 8443, targetPort: metricsPort, protocol: 'TCP' }],
  },
});
