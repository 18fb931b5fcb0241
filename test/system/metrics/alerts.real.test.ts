/** Debian's promtool on what `--metrics` installs: rules are valid, and each alert fires under its fault and goes away after it. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { alertGroups } from '#shared/metrics/alerts.ts';
import { dashboards } from '#shared/metrics/dashboards.ts';
import { must } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const rules = path.join(repositoryRoot, 'charts/isthmus/alerts.json');
let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-alerts-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Fault {
  readonly alert: string;
  /** Series as promtool writes them: a minute each, the fault from 0 to 10 minutes, then health. */
  readonly series: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
}

const node = 'cluster_id="milan",node_name="milan"';
const slice = 'cluster_id="milan",role="Provider",slice="milan",resource="cpu"';
const node0 = { cluster_id: 'milan', node_name: 'milan' };
const faults: readonly Fault[] = [
  {
    alert: 'IsthmusLinkDown',
    series: { 'liqo_peer_is_connected{driver="wireguard",cluster_id="milan"}': '0x10 1x20' },
    labels: { driver: 'wireguard', cluster_id: 'milan' },
  },
  { alert: 'IsthmusProviderSilent', series: { [`isthmus_provider_answers{${node}}`]: '0x10 1x20' }, labels: node0 },
  {
    alert: 'IsthmusCertificateEnds',
    // Ends a day after the beginning, then is replaced by one that ends after a week.
    series: {
      'isthmus_certificate_expiry_timestamp_seconds{cluster_id="milan",kind="ControlPlane",name="i"}':
        '86400x11 604800x20',
    },
    labels: { cluster_id: 'milan', kind: 'ControlPlane', name: 'i' },
  },
  { alert: 'IsthmusPodsWait', series: { [`isthmus_pod_wait_seconds{${node}}`]: '61x10 0x20' }, labels: node0 },
  {
    alert: 'IsthmusQuotaNearlyUsed',
    series: { [`isthmus_slice_used{${slice}}`]: '1.9x10 1x20', [`isthmus_slice_granted{${slice}}`]: '2x30' },
    labels: { cluster_id: 'milan', role: 'Provider', slice: 'milan', resource: 'cpu' },
  },
  { alert: 'IsthmusBrokerAway', series: { isthmus_broker_connected: '0x10 1x20' }, labels: {} },
  { alert: 'IsthmusNotLeading', series: { 'isthmus_leading{instance="a"}': '0x10 1x20' }, labels: {} },
];

const textOf = (...file: readonly string[]): string => readFileSync(path.join(repositoryRoot, ...file), 'utf8');
const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort();

test('every alert that is installed has a fault here, and a line in the docs', () => {
  const { groups } = JSON.parse(textOf('charts/isthmus/alerts.json')) as {
    groups: { rules: { alert: string }[] }[];
  };
  const installed = groups.flatMap(({ rules: all }) => all.map(({ alert }) => alert));
  expect(installed.length).toBeGreaterThan(0);
  expect(faults.map(({ alert }) => alert)).toEqual(installed);
  expect(alertGroups.flatMap(({ rules: all }) => all.map(({ alert }) => alert))).toEqual(installed);
  const documented = [...textOf('docs/metrics.md').matchAll(/^\| `(Isthmus\w+)` \|/gm)].map(([, name = '']) => name);
  expect(sorted(documented)).toEqual(sorted(installed));
});

interface InstalledPanel {
  readonly title?: string;
  readonly description?: string;
  readonly fieldConfig: { readonly defaults: { readonly unit?: string } };
  readonly targets: readonly { readonly expr: string }[];
}

test('every panel that is installed is one whose queries are asked of a real Prometheus, with a unit and a description', () => {
  const folder = path.join(repositoryRoot, 'charts/isthmus/dashboards');
  const installed = readdirSync(folder).flatMap((file) => {
    const { uid, panels } = JSON.parse(textOf('charts/isthmus/dashboards', file)) as {
      uid: string;
      panels: InstalledPanel[];
    };
    for (const { title, description, fieldConfig } of panels) {
      expect(title, file).not.toBe('');
      expect(description, `${file}: ${title}`).toMatch(/\w.*\.$/);
      expect(fieldConfig.defaults.unit, `${file}: ${title}`).toMatch(/\w/);
    }
    return panels.flatMap(({ title, targets }) => targets.map(({ expr }) => `${uid}: ${title}: ${expr}`));
  });
  const asked = dashboards.flatMap(({ uid, panels }) =>
    panels.flatMap(({ title, queries }) => queries.map(({ expr }) => `${uid}: ${title}: ${expr}`)),
  );
  expect(asked.length).toBeGreaterThan(0);
  expect(installed.sort()).toEqual(asked.sort());
});

/** Names in an expression that can be of no metric of ours are functions and labels. */
const metricsIn = (expr: string): string[] => expr.match(/\b(?:liqo|isthmus)_[a-z_]+/g) ?? [];

test('every metric that an alert or a panel reads is one that processes or the broker have', () => {
  const defined = new Set(
    [...textOf('docs/reference/metrics.md').matchAll(/`((?:liqo|isthmus)_[a-z_]+)`/g)].map(([, name = '']) => name),
  );
  const exprs = [
    ...alertGroups.flatMap(({ rules: all }) => all.map(({ expr }) => expr)),
    ...dashboards.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.map(({ expr }) => expr))),
  ];
  const unknown = sorted(exprs.flatMap(metricsIn)).filter(
    (name) => !defined.has(name) && !defined.has(name.replace(/_(bucket|sum|count)$/, '')),
  );
  expect(unknown).toEqual([]);
});

test('the rule file is valid', async () => {
  const { stdout } = await must('promtool', ['check', 'rules', rules]);
  expect(stdout).toContain(`SUCCESS: ${faults.length} rules found`);
});

test.each(faults)('$alert fires under its fault and goes away after it', async ({ alert, series, labels }) => {
  const severity = alertGroups.flatMap(({ rules: all }) => all).find((one) => one.alert === alert)?.labels.severity;
  // Its texts hold values of the moment: `promtool` compares them, so they are asked for by `ALERTS` instead.
  const firing = (at: string, isFiring: boolean) => ({
    expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
    eval_time: at,
    exp_samples: [{ labels: '{}', value: isFiring ? 1 : 0 }],
  });
  const withLabels = Object.entries({ alertname: alert, alertstate: 'firing', severity, ...labels })
    .map(([key, value]) => `${key}="${value}"`)
    .join(',');
  const file = path.join(dir, `${alert}.yaml`);
  const test = {
    rule_files: [rules],
    evaluation_interval: '30s',
    tests: [
      {
        interval: '1m',
        input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
        promql_expr_test: [
          firing('10m', true),
          {
            expr: `ALERTS{alertname="${alert}",alertstate="firing"}`,
            eval_time: '10m',
            exp_samples: [{ labels: `ALERTS{${withLabels}}`, value: 1 }],
          },
          firing('25m', false),
        ],
      },
    ],
  };
  writeFileSync(file, stringify(test));
  const { stdout } = await must('promtool', ['test', 'rules', file]);
  expect(stdout).toContain('SUCCESS');
});
