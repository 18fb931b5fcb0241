/** Debian's promtool on what `--metrics` installs: rules are valid, and each alert fires under its fault and goes away after it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { alertGroups } from '#shared/metrics/alerts.ts';
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

test('every alert has a fault here', () => {
  expect(faults.map(({ alert }) => alert)).toEqual(
    alertGroups.flatMap(({ rules: all }) => all.map(({ alert }) => alert)),
  );
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
