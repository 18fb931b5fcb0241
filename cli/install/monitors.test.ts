import { describe, expect, test } from 'vitest';
import type { KubeClient } from '#cli/cluster/open.ts';
import type { KubeObject, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { dashboards } from '#shared/metrics/dashboards.ts';
import { grafanaJson } from '#shared/metrics/panel.ts';
import { metricsManifests } from './metrics-manifests.ts';
import { applyMonitors, dashboardMaps, monitors, removeMonitors } from './monitors.ts';

/** A cluster with these CRDs. */
function cluster(crds: readonly string[]) {
  const there = new Set<string>();
  const key = (type: ResourceType, { name }: ObjectRef) => `${type.kind}/${name}`;
  const kube = {
    get: async (_: ResourceType, { name }: ObjectRef) => (crds.includes(name) ? { metadata: { name } } : undefined),
    apply: async (type: ResourceType, object: KubeObject) => void there.add(key(type, object.metadata)),
    delete: async (type: ResourceType, ref: ObjectRef) => there.delete(key(type, ref)),
  } as unknown as KubeClient;
  return { kube, there };
}
const all = ['servicemonitors', 'podmonitors', 'prometheusrules'].map((name) => `${name}.monitoring.coreos.com`);

describe('monitors', () => {
  test('are applied where a Prometheus Operator is, and removed again', async () => {
    const { kube, there } = cluster(all);
    expect(await applyMonitors(kube, 'authenticated', true, 'cli')).toBeUndefined();
    expect([...there].filter((one) => !one.startsWith('ConfigMap'))).toEqual([
      'ServiceMonitor/isthmus-agent',
      'PodMonitor/isthmus-fabric',
      'PrometheusRule/isthmus',
    ]);
    await removeMonitors(kube);
    expect([...there]).toEqual([]);
  });

  test('are left out where it is not, which is said; the dashboards are there all the same', async () => {
    const { kube, there } = cluster([]);
    expect(await applyMonitors(kube, 'authenticated', true, 'cli')).toContain(
      'ServiceMonitor, PodMonitor, PrometheusRule',
    );
    expect([...there]).toHaveLength(dashboards.length);
  });

  test('show the token of the scraper over TLS, and neither where metrics are open', () => {
    const text = (access: 'authenticated' | 'open') => JSON.stringify(monitors(access, true));
    expect(text('authenticated').match(/bearerTokenFile/g)).toHaveLength(2);
    expect(text('open')).not.toMatch(/bearerTokenFile|https/);
  });

  test('select the Service of the controllers and no other', () => {
    const [{ spec }] = monitors('authenticated', true) as unknown as [{ spec: { selector: { matchLabels: object } } }];
    const selected = metricsManifests('authenticated', true).filter(({ kind, metadata }) => {
      const wanted = Object.entries(spec.selector.matchLabels);
      return kind === 'Service' && wanted.every(([key, value]) => metadata.labels?.[key] === value);
    });
    expect(selected.map(({ metadata }) => metadata.name)).toEqual(['isthmus-agent-metrics']);
  });
});

describe('dashboards', () => {
  test('say of each panel what it shows, and in which unit', () => {
    for (const dashboard of dashboards) {
      const { panels } = grafanaJson(dashboard) as {
        panels: {
          title: string;
          description: string;
          fieldConfig: { defaults: { unit: string } };
          targets: unknown[];
        }[];
      };
      for (const { title, description, fieldConfig, targets } of panels) {
        expect(description, title).toMatch(/^[A-Z].+\.$/);
        expect(fieldConfig.defaults.unit, title).not.toBe('');
        expect(targets.length, title).toBeGreaterThan(0);
      }
      expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    }
  });

  test('are ConfigMaps that the sidecar of Grafana finds', () => {
    for (const { metadata, data } of dashboardMaps()) {
      expect(metadata.labels?.grafana_dashboard).toBe('1');
      for (const text of Object.values(data ?? {})) expect(JSON.parse(text)).toHaveProperty('panels');
    }
  });
});
