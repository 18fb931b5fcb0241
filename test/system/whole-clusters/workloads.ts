/** Pods that scenarios run, all of the one static test program. */
import type { KubeObject } from '#shared/domain/kube-object.ts';

const image = 'isthmus.test/workload:1';

export interface ContainerOptions {
  readonly name?: string;
  readonly [field: string]: unknown;
}

export const container = (args: readonly string[], { name = 'main', ...fields }: ContainerOptions = {}) => ({
  name,
  image,
  imagePullPolicy: 'IfNotPresent',
  args: [...args],
  resources: { requests: { cpu: '10m', memory: '8Mi' } },
  ...fields,
});

type Container = ReturnType<typeof container>;

export interface PodOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly [specField: string]: unknown;
}

export const pod = (
  namespace: string,
  name: string,
  containers: readonly Container[],
  { labels, ...spec }: PodOptions = {},
): KubeObject & { spec: unknown } => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, ...(labels ? { labels: { ...labels } } : {}) },
  spec: { terminationGracePeriodSeconds: 5, containers, ...spec },
});

export const deployment = (
  namespace: string,
  name: string,
  replicas: number,
  containers: readonly Container[],
): KubeObject & { spec: unknown } => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { terminationGracePeriodSeconds: 5, containers },
    },
  },
});
