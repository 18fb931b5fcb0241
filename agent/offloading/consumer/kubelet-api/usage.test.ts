import { expect, test } from 'vitest';
import type { Pod } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import type { PodMetrics } from './pod-usage.ts';
import { windowMs } from './pod-usage.ts';
import { onlyPods, UsagePages } from './usage-pages.ts';

const at = (seconds: number): string => new Date(1_700_000_000_000 + seconds * 1_000).toISOString();
const metrics = (name: string, cpu: string, seconds: number, memory = '64Mi'): PodMetrics => ({
  metadata: { name, namespace: 'demo-rome' },
  timestamp: at(seconds),
  window: '10s',
  containers: [{ name: 'app', usage: { cpu, memory } }],
});
const pod = (name: string): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'demo', uid: `uid-${name}` },
    spec: { containers: [{ name: 'app', image: 'web:1' }] },
    status: { startTime: at(-60), containerStatuses: [{ name: 'app', state: { running: { startedAt: at(-50) } } }] },
  }) as unknown as Pod;

function node(mine: readonly string[], answer: (path: string) => string | Error) {
  const clock = new ManualClock();
  const paths: string[] = [];
  const pages = new UsagePages({
    nodeName: 'milan',
    consumer: 'rome',
    clock,
    labelSelector: 'offloading.liqo.io/nodename=milan',
    namespaces: () => [{ local: 'demo', remote: 'demo-rome' }],
    find: (namespace, name) => (namespace === 'demo' && mine.includes(name) ? pod(name) : undefined),
    async getPath(path) {
      paths.push(path);
      const said = answer(path);
      if (said instanceof Error) throw said;
      return said;
    },
  });
  return {
    clock,
    paths,
    page: (what: Parameters<UsagePages['page']>[0]) => pages.page(what, new AbortController().signal),
  };
}
const list = (...items: PodMetrics[]): string => JSON.stringify({ items });
const absent = new AppError('kube_not_found', 'not found');
const sample = (text: string, name: string): string | undefined =>
  text.split('\n').find((line) => line.startsWith(name) && !line.startsWith('#'));

test('B125 a virtual node tells the usage of its own pods only, under their names at the consumer', async () => {
  const { page, paths } = node(['web'], (path) =>
    path.includes('metrics.k8s.io') ? list(metrics('web', '250m', 0), metrics('of-another-node', '4', 0)) : absent,
  );
  const { node: total, pods } = JSON.parse(await page('summary'));
  expect(pods).toHaveLength(1);
  expect(pods[0]).toMatchObject({
    podRef: { name: 'web', namespace: 'demo', uid: 'uid-web' },
    cpu: { usageNanoCores: 250_000_000, usageCoreNanoSeconds: 2_500_000_000 },
    memory: { workingSetBytes: 64 * 1024 * 1024 },
  });
  expect(total).toMatchObject({ nodeName: 'milan', cpu: { usageNanoCores: 250_000_000 } });
  expect(paths).toEqual([
    '/apis/metrics.k8s.io/v1beta1/namespaces/demo-rome/pods?labelSelector=offloading.liqo.io%2Fnodename%3Dmilan',
  ]);
});

test('rates become counters that grow with the time between two measurements', async () => {
  let now = metrics('web', '500m', 0);
  const { page, clock } = node(['web'], () => list(now));
  expect(sample(await page('resource'), 'pod_cpu_usage')).toContain(' 5 1700000000000');
  now = metrics('web', '1', 15);
  expect(sample(await page('resource'), 'pod_cpu_usage')).toContain(' 5 ');
  clock.advance(15_000);
  const text = await page('resource');
  expect(sample(text, 'pod_cpu_usage')).toBe(
    'pod_cpu_usage_seconds_total{namespace="demo",pod="web"} 20 1700000015000',
  );
  expect(sample(text, 'container_start_time')).toContain(` ${1_700_000_000 - 50}`);
  clock.advance(15_000);
  expect(sample(await page('resource'), 'pod_cpu_usage')).toContain(' 20 1700000015000');
});

test('the counter of the node does not fall when a pod goes', async () => {
  let items = [metrics('web', '1', 0), metrics('db', '1', 0)];
  const { page, clock } = node(['web', 'db'], () => list(...items));
  expect(sample(await page('resource'), 'node_cpu')).toMatch(/^node_cpu_usage_seconds_total 20 /);
  clock.advance(15_000);
  items = [metrics('web', '1', 15)];
  expect(sample(await page('resource'), 'node_cpu')).toMatch(/^node_cpu_usage_seconds_total 35 /);
});

test('the counter of a pod does not fall when the provider could not be asked for a while', async () => {
  let answer: () => string | Error = () => list(metrics('web', '1', 0));
  const { page, clock } = node(['web'], () => answer());
  expect(sample(await page('resource'), 'pod_cpu_usage')).toContain(' 10 ');
  clock.advance(15_000);
  answer = () => new AppError('kube_unreachable', 'connection refused');
  expect(sample(await page('resource'), 'node_cpu')).toBeUndefined();
  clock.advance(15_000);
  answer = () => list(metrics('web', '1', 30));
  const text = await page('resource');
  expect(sample(text, 'pod_cpu_usage')).toContain(' 40 ');
  expect(sample(text, 'node_cpu')).toContain(' 40 ');
});

test('what a provider says in several lines does not spoil the page', async () => {
  const { page } = node(
    ['web'],
    () => new AppError('kube_failed', '<html>\nnode_cpu_usage_seconds_total 1e9\r\n</html>'),
  );
  expect(sample(await page('resource'), 'node_cpu')).toBeUndefined();
});

test.each([
  { error: absent, says: 'serves no metrics.k8s.io' },
  { error: new AppError('kube_forbidden', 'no'), says: 'does not let us read' },
  { error: new AppError('kube_unreachable', 'connection refused'), says: 'connection refused' },
])('a provider without metrics ($error.code) is told, and fails nothing', async ({ error, says }) => {
  const { page } = node(['web'], () => error);
  const text = await page('resource');
  expect(text).toContain(says);
  expect(sample(text, 'resource_scrape_error')).toBe('resource_scrape_error 1');
  expect(JSON.parse(await page('summary'))).toEqual({ node: { nodeName: 'milan' }, pods: [] });
  expect(await page('cadvisor')).toContain('container_scrape_error');
});

test("where the provider runs Liqo's metric agent its cAdvisor page is passed on, without the pods of other nodes", async () => {
  const text = [
    '# TYPE container_fs_reads_total counter',
    'container_fs_reads_total{container="app",namespace="demo",pod="web"} 7',
    'container_fs_reads_total{container="app",namespace="demo",pod="other"} 8',
    'machine_cpu_cores{} 64',
  ].join('\n');
  const { page, paths } = node(['web'], () => text);
  expect(await page('cadvisor')).toBe(`${text.split('\n').slice(0, 2).join('\n')}\n`);
  expect(paths).toEqual(['/apis/metrics.liqo.io/v1beta1/scrape/rome/metrics/cadvisor']);
});

test('labels that only look like a namespace and a pod do not let a line through', () => {
  const has = (namespace: string, name: string): boolean => namespace === 'demo' && name === 'web';
  expect(onlyPods('a{x_namespace="demo",pod="web"} 1', has)).toBe('');
  expect(onlyPods('a{namespace="demo",x_pod="web"} 1', has)).toBe('');
  expect(onlyPods('a{id="\\",namespace=\\"demo\\",pod=\\"web\\"",namespace="x",pod="y"} 1', has)).toBe('');
  expect(onlyPods('a{namespace="demo",image="b",pod="web"} 1', has)).not.toBe('');
  expect(onlyPods('a{pod="web",namespace="demo"} 1', has)).not.toBe('');
  expect(onlyPods('a{namespace="demo",id="\\\\",pod="web"} 1', has)).not.toBe('');
});

test('a provider cannot keep the agent busy with a line that is hard to read', () => {
  const line = `a{${'namespace="demo",'.repeat(60_000)}x="y"} 1`;
  const before = process.cpuUsage();
  expect(onlyPods(line, () => true)).toBe('');
  expect(windowMs('1'.repeat(150_000))).toBe(0);
  // Of the processor, so that it does not count how busy the machine is: a pattern that goes back over the line takes minutes.
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
});

test('an answer that is no list of metrics is a problem in words like any other', async () => {
  const { page } = node(['web'], () => '{"items":[{}]}');
  expect(sample(await page('resource'), 'resource_scrape_error')).toBe('resource_scrape_error 1');
});

test.each([
  { text: '15s', ms: 15_000 },
  { text: '1m2.5s', ms: 62_500 },
  { text: '500ms', ms: 500 },
  { text: 'soon', ms: 0 },
  { text: undefined, ms: 0 },
])('a window of $text is $ms ms', ({ text, ms }) => {
  expect(windowMs(text)).toBe(ms);
});
