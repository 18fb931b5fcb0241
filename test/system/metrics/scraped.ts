/** Debian's Prometheus scrapes two real clusters and their broker: all targets are up, and each query of each panel and alert returns data. */
import { mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { ClusterStatus } from '#cli/status/summary.ts';
import { alertGroups } from '#shared/metrics/alerts.ts';
import { dashboards } from '#shared/metrics/dashboards.ts';
import { freePort } from '#test/aws/free-port.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { ProductClusters } from '#test/harness/product-clusters.ts';
import { background, run } from '#test/harness/program.ts';
import { endProcess } from '#test/testbed/processes.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const names = ['rome', 'milan'] as const;
const metricsPort = 11_247;

export interface Scraped {
  readonly world: ProductClusters;
  /** `HOST:PORT` of `isthmus broker serve --metrics`. */
  readonly brokerMetrics: string;
}

interface Answer {
  readonly status: number | undefined;
  readonly text: string;
}

const get = (url: string, headers: Record<string, string> = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const options = { headers, agent: false, ...(url.startsWith('https:') && { rejectUnauthorized: false }) };
    (url.startsWith('https:') ? https : http)
      .get(url, options, async (answer) => {
        let text = '';
        for await (const piece of answer) text += piece;
        resolve({ status: answer.statusCode, text });
      })
      .once('error', reject);
  });

interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

async function queryAt(url: string, expr: string): Promise<readonly Sample[]> {
  const { text } = await get(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`);
  const answer = JSON.parse(text) as { status: string; error?: string; data: { result: Sample[] } };
  if (answer.status !== 'success') throw new Error(`${expr}: ${answer.error}`);
  return answer.data.result;
}

/** Of two clusters that joined with `--metrics` and are peered, with one pod of rome's namespace `shop` at milan; they stay so. */
export function scraped(on: () => Scraped): void {
  let prometheus: { readonly url: string; readonly pid: number } | undefined;
  const tokens: Record<string, string> = {};
  const query = (expr: string): Promise<readonly Sample[]> => queryAt(prometheus?.url ?? '', expr);
  const nodeAddress = async (name: string): Promise<string> => {
    const path = 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}';
    return on().world.cluster(name).kubectl('get', 'nodes', '-l', 'liqo.io/type!=virtual-node', '-o', path);
  };
  afterAll(async () => {
    if (prometheus !== undefined) await endProcess(prometheus.pid, 10_000);
  });

  test('processes refuse callers without a token, and those whose account has no right', async () => {
    for (const name of names) {
      const url = `https://${await nodeAddress(name)}:${metricsPort}/metrics`;
      const { kubectl } = on().world.cluster(name);
      expect((await get(url)).status).toBe(401);
      await kubectl('create', 'serviceaccount', 'prometheus');
      tokens[name] = (await kubectl('create', 'token', 'prometheus', '--duration=1h')).trim();
      expect((await get(url, { authorization: `Bearer ${tokens[name]}` })).status).toBe(403);
      const role = ['--clusterrole', 'isthmus-metrics-reader', '--serviceaccount', 'default:prometheus'];
      await kubectl('create', 'clusterrolebinding', 'prometheus', ...role);
    }
  });

  test('dashboards are there as ConfigMaps, and monitors are left out where there is no Prometheus Operator', async () => {
    const maps = await on()
      .world.cluster('rome')
      .kubectl('-n', 'liqo', 'get', 'configmaps', '-l', 'grafana_dashboard=1', '-o', 'name');
    expect(maps.trim().split('\n').sort()).toEqual(dashboards.map(({ uid }) => `configmap/${uid}-dashboard`).sort());
  });

  test('Prometheus finds all its targets up', async () => {
    const dir = path.join(on().world.stateDir, 'prometheus');
    mkdirSync(dir, { recursive: true });
    const port = await freePort();
    const job = async (name: string) => ({
      job_name: name,
      scheme: 'https',
      tls_config: { insecure_skip_verify: true },
      authorization: { credentials: tokens[name] },
      static_configs: [{ targets: [`${await nodeAddress(name)}:${metricsPort}`] }],
    });
    const config = {
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: [path.join(repositoryRoot, 'charts/isthmus/alerts.json')],
      scrape_configs: [
        ...(await Promise.all(names.map(job))),
        { job_name: 'broker', static_configs: [{ targets: [on().brokerMetrics] }] },
      ],
    };
    writeFileSync(path.join(dir, 'prometheus.yml'), stringify(config));
    const args = [
      `--config.file=${dir}/prometheus.yml`,
      `--storage.tsdb.path=${dir}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    const child = background('prometheus', args, path.join(dir, 'log'));
    prometheus = { url: `http://127.0.0.1:${port}`, pid: child.pid ?? 0 };
    await eventually(
      'three targets up',
      async () => {
        const up = await query('up').catch(() => []);
        return up.length === 3 && up.every(({ value }) => value[1] === '1');
      },
      { withinMs: 90_000, everyMs: 500 },
    );
  });

  test('each query of each panel returns data', async () => {
    const missing = async (): Promise<string[]> => {
      const found: string[] = [];
      for (const { title, panels } of dashboards)
        for (const panel of panels)
          for (const { expr } of panel.queries)
            if ((await query(expr.replaceAll('$__rate_interval', '1m'))).length === 0)
              found.push(`${title}: ${panel.title}: ${expr}`);
      return found;
    };
    let left: string[] = [];
    await eventually(
      'every panel has data',
      async () => {
        left = await missing();
        return left.length === 0;
      },
      { withinMs: 90_000, everyMs: 2_000 },
    ).catch((error: unknown) => {
      throw new Error(`without data:\n${left.join('\n')}`, { cause: error });
    });
  });

  test('each metric that an alert reads has samples, and no alert fires', async () => {
    for (const { alert, expr } of alertGroups.flatMap(({ rules }) => rules))
      for (const name of new Set(expr.match(/\b(liqo|isthmus)_[a-z_]+/g)))
        expect(await query(name), `${alert}: ${name}`).not.toEqual([]);
    expect(await query('ALERTS{alertstate="firing"}')).toEqual([]);
  });

  test('isthmus status tells both ends with a kubeconfig alone, and warns of nothing', async () => {
    const statusOf = async (name: string) => {
      const kubeconfig = on().world.cluster(name).kubeconfigPath;
      return JSON.parse(
        await on().world.mustIsthmus('status', '--kubeconfig', kubeconfig, '-o', 'json'),
      ) as ClusterStatus;
    };
    const [rome, milan] = [await statusOf('rome'), await statusOf('milan')];
    expect(rome).toMatchObject({
      clusterId: 'rome',
      broker: { connected: true },
      peers: [{ id: 'milan', role: 'Provider', link: { value: 'Connected' }, offloadedPods: 1 }],
      namespaces: [{ name: 'shop', phase: 'Ready', pods: 1 }],
      warnings: [],
    });
    expect(rome.peers[0]?.slices).toMatchObject([{ direction: 'borrowed', granted: { cpu: '1', pods: '10' } }]);
    expect(milan.peers).toMatchObject([{ id: 'rome', role: 'Consumer', link: { value: 'Connected' } }]);
    expect(milan.peers[0]?.slices).toMatchObject([{ direction: 'lent', used: { pods: '1' } }]);
    const ranges = rome.ranges.map(({ name }) => name).sort();
    expect(ranges).toEqual(expect.arrayContaining(['external-cidr', 'internal-cidr', 'pod-cidr', 'service-cidr']));
  });

  test('promtool has nothing to say of names that are not Liqo’s', async () => {
    for (const name of names) {
      const url = `https://${await nodeAddress(name)}:${metricsPort}/metrics`;
      const { text } = await get(url, { authorization: `Bearer ${tokens[name]}` });
      const { stdout, stderr } = await run('promtool', ['check', 'metrics'], { input: text });
      const complaints = `${stdout}${stderr}`.split('\n').filter((line) => line !== '' && !line.startsWith('liqo_'));
      expect(complaints).toEqual([]);
    }
  });

  test('the alert about a link fires when the provider’s end is gone', async () => {
    for (const pid of on().world.ownPids('milan').gateway) process.kill(pid, 'SIGSTOP');
    try {
      const down = 'liqo_peer_is_connected{job="rome"} == 0';
      await eventually('rome says that the link is down', async () => (await query(down)).length === 1, {
        withinMs: 60_000,
        everyMs: 500,
      });
      const pending = 'ALERTS{alertname="IsthmusLinkDown",job="rome"}';
      await eventually('the alert', async () => (await query(pending)).length === 1, {
        withinMs: 30_000,
        everyMs: 500,
      });
    } finally {
      for (const pid of on().world.ownPids('milan').gateway) process.kill(pid, 'SIGCONT');
    }
    const up = 'liqo_peer_is_connected{job="rome"} == 1';
    await eventually('rome says that the link is up', async () => (await query(up)).length === 1, {
      withinMs: 60_000,
      everyMs: 500,
    });
    const any = 'ALERTS{alertname="IsthmusLinkDown",job="rome"}';
    await eventually('the alert goes', async () => (await query(any)).length === 0, { withinMs: 30_000, everyMs: 500 });
  });
}
