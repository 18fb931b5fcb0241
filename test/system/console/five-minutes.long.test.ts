/**
 * README's five minutes on two real clusters: everything at the broker by clicks in the console, in the clusters by the very lines that it shows.
 * Before they unpeer, Prometheus scrapes them.
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
  await kubectl(
    '--namespace',
    'shop',
    'create',
    'deployment',
    'web',
    `--image=${world.image}`,
    '--',
    'sleep',
    'infinity',
  );
  await eventually(
    'the pod runs on milan',
    async () =>
      /1\/1\s+Running/.test(await kubectl('--namespace', 'shop', 'get', 'pods', '-o', 'wide', '--no-headers')),
    patience,
  );
}, 600_000);

scraped(() => ({ world, brokerMetrics }));

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
