/**
 * README's five minutes on two real clusters: everything at the broker by clicks in the console, in the clusters by the very lines that it shows.
 * Before they unpeer, Prometheus scrapes them, and the page shows what a pod of one has had from a pod of the other.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { freePort } from '#test/aws/free-port.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import {
  moreThanThereIs,
  openProductClusters,
  type ProductClusters,
  removeProductClusters,
} from '#test/harness/product-clusters.ts';
import { run } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { scraped } from '../metrics/scraped.ts';
import { logIn, openBrowser, type Visit, visit } from './browser.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'console-under-test') };
const patience = { withinMs: 120_000, everyMs: 250 } as const;
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });
let world: ProductClusters;
let brokerMetrics: string;
let browser: Browser;
let seen: Visit;

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  await removeProductClusters(place);
  brokerMetrics = `127.0.0.1:${await freePort()}`;
  const brokerFlags = ['--metrics', brokerMetrics];
  [world, browser] = await Promise.all([
    openProductClusters({ ...place, clusters: ['rome', 'milan'], brokerPort: 7943, brokerFlags }),
    openBrowser(),
  ]);
}, 900_000);
afterAll(async () => {
  await browser?.close();
  await removeProductClusters(place);
}, 180_000);

/** The lines that the page shows, in order. */
const shownLines = (page: Page): Promise<string[]> => page.locator('.command code').allTextContents();
const lineWith = async (page: Page, beginning: string): Promise<string[]> => {
  const line = (await shownLines(page)).find((each) => each.startsWith(beginning));
  expect(line, beginning).toBeDefined();
  return (line ?? '').split(' ');
};

/** As pasted, with the kubeconfig where it is on this machine. */
async function paste(words: readonly string[], ...more: readonly string[]): Promise<string> {
  const [program, ...args] = words.map((word) => {
    const cluster = /^(rome|milan)\.kubeconfig$/.exec(word)?.[1];
    return cluster === undefined ? word : world.cluster(cluster).kubeconfigPath;
  });
  if (program === 'isthmus') return world.mustIsthmus(...args, ...more);
  const ended = await run(path.join(world.bed.dir, 'kubectl'), [...args, ...more], { timeoutMs: 60_000 });
  expect(ended.code, ended.stderr).toBe(0);
  return ended.stdout;
}

/** What a pod answers to a request, and how often another one asks: so many bytes a second come through the link, unless it is down. */
const bytesPerSecond = 500_000;
const serving = `require('node:http').createServer((_, answer) => answer.end(Buffer.alloc(${bytesPerSecond}))).listen(8080)`;
const asking = (url: string): string =>
  `setInterval(() => fetch('${url}', { signal: AbortSignal.timeout(900) }).then((answer) => answer.arrayBuffer()).catch(() => undefined), 1000)`;
const program = (text: string): readonly string[] => ['--', '/usr/local/bin/node', '-e', text];

const kubectl = (...args: readonly string[]) => paste(['kubectl', '--kubeconfig', 'rome.kubeconfig', ...args]);

test('two clusters join, peer and lend a node to pods, with the console open', async () => {
  const log = readFileSync(world.broker.logFile, 'utf8');
  const key = /admin key, shown this once: (\S+)/.exec(log)?.[1] ?? expect.fail('the broker prints a key');
  const url = /^console (https:\S+)\/$/m.exec(log)?.[1] ?? expect.fail('the broker prints the address of the console');
  seen = await visit(browser, { url });
  const { page } = seen;
  page.setDefaultTimeout(90_000);
  await logIn(seen, key);

  for (const name of ['rome', 'milan']) {
    await page.goto(`${url}/#/join`);
    await page.getByLabel('Name of the cluster').fill(name);
    await page.getByRole('button', { name: 'Show the lines' }).click();
    await page.getByRole('button', { name: 'Make a key for it' }).click();
    await page.getByText(/--key isk_/).waitFor();
    await paste(await lineWith(page, 'isthmus login'));
    await paste(await lineWith(page, 'isthmus join'), '--image', world.image, '--metrics', ...moreThanThereIs);
    await page.getByText(`${name} has arrived`).waitFor();
    await page.goto(`${url}/#/clusters`);
  }

  await page.goto(`${url}/#/peer`);
  await page.getByLabel('Consumer, which borrows').selectOption('rome');
  await page.getByLabel('Provider, which appears in the consumer as one more node').selectOption('milan');
  await page.getByLabel('CPU', { exact: true }).fill('1');
  await page.getByLabel('Memory', { exact: true }).fill('512Mi');
  await page.getByLabel('Pods', { exact: true }).fill('10');
  await page.getByRole('button', { name: 'Peer', exact: true }).click();
  await page.locator('.head .state', { hasText: 'Ready' }).waitFor();
  await page.getByText('Connected').first().waitFor();
  expect(await paste(await lineWith(page, 'kubectl'))).toContain('milan');

  await kubectl('create', 'namespace', 'shop');
  await paste(await lineWith(page, 'isthmus offload'), '--pod-offloading-strategy', 'Remote');
  const inShop = (...args: readonly string[]) => kubectl('--namespace', 'shop', ...args);
  await inShop('create', 'deployment', 'web', `--image=${world.image}`, ...program(serving));
  await eventually(
    'the pod runs on milan',
    async () => /1\/1\s+Running/.test(await inShop('get', 'pods', '-o', 'wide', '--no-headers')),
    patience,
  );
  const address = await inShop('get', 'pods', '-o', 'jsonpath={.items[0].status.podIP}');
  await kubectl(
    'create',
    'deployment',
    'asking',
    `--image=${world.image}`,
    ...program(asking(`http://${address}:8080/`)),
  );
}, 600_000);

scraped(() => ({ world, brokerMetrics }));

/** As the page writes it. */
function rateOf(text: string): number {
  const [, value = '', unit = ''] = /^([\d.]+) (B|kB|MB)\/s$/.exec(text) ?? expect.fail(`no rate: ${text}`);
  return Number(value) * { B: 1, kB: 1e3, MB: 1e6 }[unit as 'B' | 'kB' | 'MB'];
}

test('the page shows the bytes and the round trips of the link between the two kernels', async () => {
  const { page } = seen;
  const lately = page.getByRole('region', { name: 'Lately' });
  // Agents report whole minutes, every five of them while nothing changes; the page asks each minute.
  const rows = async (title: string): Promise<string[][]> => {
    const chart = lately.locator('figure', { hasText: title });
    if ((await chart.locator('details[open]').count()) === 0) await chart.getByText(`${title} as a table`).click();
    const all = await chart.locator('tbody tr').all();
    return Promise.all(all.map((row) => row.locator('td').allTextContents()));
  };
  let shown: string[][] = [];
  await eventually(
    'a minute with what the pods sent each other',
    async () => {
      shown = (await lately.locator('figure').count()) === 0 ? [] : await rows('Throughput');
      return shown.some((cells) => cells.some((cell) => cell !== '' && rateOf(cell) > bytesPerSecond * 0.8));
    },
    { withinMs: 480_000, everyMs: 2_000 },
  ).catch((error: unknown) => {
    throw new Error(`shown: ${JSON.stringify(shown)}`, { cause: error });
  });
  const rates = shown.flat().flatMap((cell) => (cell === '' ? [] : [rateOf(cell)]));
  // With what WireGuard and TCP add; nothing else speaks through this link but scrapes of health.
  expect(Math.max(...rates)).toBeLessThan(bytesPerSecond * 1.5);
  // One direction carries the answers, the other one acknowledges them.
  expect(Math.min(...shown.map((cells) => Math.min(...cells.filter(Boolean).map(rateOf))))).toBeLessThan(
    bytesPerSecond * 0.2,
  );
  const trips = (await rows('Round trip')).flat().filter(Boolean);
  expect(trips.length).toBeGreaterThan(0);
  for (const trip of trips) expect(Number(/^([\d.]+) ms$/.exec(trip)?.[1]), trip).toBeGreaterThan(0);
  const picture = lately.locator('figure', { hasText: 'Throughput' }).locator('path').first();
  expect(await picture.getAttribute('d')).toMatch(/[ML]/);
}, 600_000);

test('they unpeer, by the same console', async () => {
  const { page } = seen;
  await world.mustIsthmus('unoffload', 'namespace', 'shop', '--kubeconfig', world.cluster('rome').kubeconfigPath);

  await page.getByRole('button', { name: 'Unpeer', exact: true }).click();
  await page.getByLabel('Type rome milan to go on').fill('rome milan');
  await page.getByRole('dialog').getByRole('button', { name: 'Unpeer', exact: true }).click();
  await page.locator('.head .state', { hasText: 'Gone' }).waitFor();
  expect(await kubectl('get', 'nodes', '--no-headers')).not.toContain('milan');
  expect(seen.complaints).toEqual([]);
}, 600_000);
