/** The real metrics server in a cluster of a bed, as its project installs it, but for a shorter interval. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { buildMetricsServerImage, metricsServerImage } from '#test/testbed/images.ts';
import type { BedCluster } from '#test/testbed/testbed.ts';

const name = 'metrics-server';
const within = { name, namespace: 'kube-system' };
const labels = { 'k8s-app': name };
const rbac = 'rbac.authorization.k8s.io';
const account = { kind: 'ServiceAccount', ...within };
const binding = (kind: string, bound: string, role: { kind: string; name: string }, namespace?: string) => ({
  apiVersion: `${rbac}/v1`,
  kind,
  metadata: { name: bound, ...(namespace ? { namespace } : {}) },
  roleRef: { apiGroup: rbac, ...role },
  subjects: [account],
});

const manifests = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: within },
  {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRole',
    metadata: { name: `system:${name}` },
    rules: [
      { apiGroups: [''], resources: ['nodes/metrics'], verbs: ['get'] },
      { apiGroups: [''], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] },
    ],
  },
  binding('ClusterRoleBinding', `system:${name}`, { kind: 'ClusterRole', name: `system:${name}` }),
  binding('ClusterRoleBinding', `${name}:system:auth-delegator`, {
    kind: 'ClusterRole',
    name: 'system:auth-delegator',
  }),
  binding(
    'RoleBinding',
    `${name}-auth-reader`,
    { kind: 'Role', name: 'extension-apiserver-authentication-reader' },
    'kube-system',
  ),
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: within,
    spec: { selector: labels, ports: [{ port: 443, targetPort: 10_250 }] },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: within,
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: name,
          terminationGracePeriodSeconds: 1,
          containers: [
            {
              name,
              image: metricsServerImage,
              imagePullPolicy: 'IfNotPresent',
              args: [
                '--cert-dir=/tmp',
                '--secure-port=10250',
                '--kubelet-insecure-tls',
                '--kubelet-preferred-address-types=InternalIP',
                '--kubelet-use-node-status-port',
                '--metric-resolution=10s',
                '--kubelet-request-timeout=5s',
              ],
              resources: { requests: { cpu: '10m', memory: '32Mi' } },
            },
          ],
        },
      },
    },
  },
  {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1beta1.metrics.k8s.io' },
    spec: {
      group: 'metrics.k8s.io',
      version: 'v1beta1',
      service: within,
      insecureSkipTLSVerify: true,
      groupPriorityMinimum: 100,
      versionPriority: 100,
    },
  },
];

/** Does not wait: the first numbers come after two of its rounds, some thirty seconds later. `dir`: for a file that kubectl applies. */
export async function installMetricsServer(clusters: readonly BedCluster[], dir: string): Promise<void> {
  const tar = await buildMetricsServerImage(cacheDir(), () => undefined);
  const file = path.join(dir, 'metrics-server.json');
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }));
  await Promise.all(
    clusters.map(async (cluster) => {
      await cluster.importImage(tar);
      await cluster.kubectl('apply', '-f', file);
    }),
  );
}
