/** What `--metrics` adds for a Prometheus Operator and for Grafana. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { configMaps, customResourceDefinitions } from '#shared/domain/core-kinds.ts';
import { type ConfigMap, type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName } from '#shared/domain/network-keys.ts';
import { alertGroups } from '#shared/metrics/alerts.ts';
import { dashboards } from '#shared/metrics/dashboards.ts';
import { grafanaJson } from '#shared/metrics/panel.ts';
import { installLabel } from './install-label.ts';
import { type MetricsAccess, metricsLabel, metricsPort } from './metrics-manifests.ts';

const group = 'monitoring.coreos.com';
const version = 'v1';
const handle = (kind: string, plural: string): ResourceType => ({ group, version, kind, plural, namespaced: true });

const kinds = {
  ServiceMonitor: handle('ServiceMonitor', 'servicemonitors'),
  PodMonitor: handle('PodMonitor', 'podmonitors'),
  PrometheusRule: handle('PrometheusRule', 'prometheusrules'),
} as const;
type Kind = keyof typeof kinds;

export interface Monitor extends KubeObject {
  kind: Kind;
  spec: unknown;
}

const endpoint = (access: MetricsAccess) => ({
  port: metricsPort,
  interval: '30s',
  ...(access === 'open'
    ? { scheme: 'http' }
    : {
        scheme: 'https',
        // Each process makes its certificate itself; the token is what counts.
        tlsConfig: { insecureSkipVerify: true },
        bearerTokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
      }),
});

const monitor = (kind: Kind, name: string, spec: unknown): Monitor => ({
  apiVersion: `${group}/${version}`,
  kind,
  metadata: { name, namespace: systemNamespace, labels: { ...installLabel } },
  spec,
});

export const monitors = (access: MetricsAccess, hasNetwork: boolean): Monitor[] => [
  monitor('ServiceMonitor', 'isthmus-agent', {
    selector: { matchLabels: { ...metricsLabel } },
    endpoints: [endpoint(access)],
  }),
  ...(hasNetwork
    ? [
        monitor('PodMonitor', fabricName, {
          selector: { matchLabels: { ...installLabel, 'app.kubernetes.io/name': fabricName } },
          podMetricsEndpoints: [endpoint(access)],
        }),
      ]
    : []),
  monitor('PrometheusRule', 'isthmus', { groups: alertGroups }),
];

/** Grafana's sidecar looks for their label. */
export const dashboardMaps = (): ConfigMap[] =>
  dashboards.map((dashboard) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: `${dashboard.uid}-dashboard`,
      namespace: systemNamespace,
      labels: { ...installLabel, grafana_dashboard: '1' },
    },
    data: { [`${dashboard.uid}.json`]: JSON.stringify(grafanaJson(dashboard)) },
  }));

const crdOf = (kind: Kind) => ({ name: `${kinds[kind].plural}.${group}` });

/** Applies what the cluster has kinds for; answers a note about the rest. */
export async function applyMonitors(
  kube: KubeClient,
  access: MetricsAccess,
  hasNetwork: boolean,
  fieldManager: string,
): Promise<string | undefined> {
  for (const map of dashboardMaps()) await kube.apply(configMaps, map, fieldManager);
  const missing: string[] = [];
  for (const object of monitors(access, hasNetwork)) {
    if (await kube.get(customResourceDefinitions, crdOf(object.kind)))
      await kube.apply(kinds[object.kind], object, fieldManager);
    else missing.push(object.kind);
  }
  return missing.length === 0
    ? undefined
    : `the cluster has no kinds ${missing.join(', ')}, which come with the Prometheus Operator; they are left out until this command runs again`;
}

export async function removeMonitors(kube: KubeClient): Promise<void> {
  for (const map of dashboardMaps()) await kube.delete(configMaps, refOf(map));
  for (const object of monitors('authenticated', true)) {
    if (await kube.get(customResourceDefinitions, crdOf(object.kind)))
      await kube.delete(kinds[object.kind], refOf(object));
  }
}
