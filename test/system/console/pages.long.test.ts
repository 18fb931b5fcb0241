/** Every page of the console in Debian's Chromium: its content, accessibility in light and dark, the policy of the page, its pictures for the docs. */
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { logIn, mustBeAccessible, openBrowser, type Visit, visit } from './browser.ts';
import { adminOf, type ConsoleBroker, startConsoleBroker } from './console-broker.ts';

let console: ConsoleBroker;
let browser: Browser;
const looks = [
  { dark: false, narrow: false },
  { dark: true, narrow: true },
  { dark: false, narrow: true },
  { dark: true, narrow: false },
];
/** One for each look, logged in. */
const readers: (Visit & { readonly dark: boolean; readonly narrow: boolean })[] = [];
let peering = '';
let webhook = '';
/** `ISTHMUS_PICTURES=docs/console` renews those of the docs. */
const pictures = path.resolve(repositoryRoot, process.env.ISTHMUS_PICTURES ?? '.build/console-pictures');

beforeAll(async () => {
  [console, browser] = await Promise.all([startConsoleBroker(), openBrowser()]);
  const [rome, milan] = [await console.join('rome'), await console.join('milan'), await console.join('turin')];
  const { control } = console.broker();
  await control.clusters.label(adminOf(), 'rome', { labels: { tier: 'gold' } });
  const asked = { consumer: 'rome', provider: 'milan', resources: { cpu: '2', memory: '4Gi' } };
  await control.directory.publish(adminOf(), {
    cluster: 'milan',
    region: 'eu-1',
    labels: { tier: 'gold' },
    classes: ['default'],
    capacity: { cpu: '8' },
    description: 'spare capacity at night',
  });
  // Nothing listens on port 9 of loopback: deliveries fail, which the page shows.
  const hook = { url: 'http://127.0.0.1:9/isthmus', types: ['*'], description: 'the portal' };
  webhook = (await control.webhooks.create(adminOf(), hook)).webhook.id;
  peering = (await control.peerings.request(adminOf(), asked)).peering.id;
  await eventually(
    'the peering to be Ready',
    async () => (await control.peerings.get(adminOf(), peering)).phase === 'Ready',
  );
  const minute = Math.floor(Date.now() / 60_000) * 60;
  const ago = Array.from({ length: 55 }, (_, back) => minute - (55 - back) * 60);
  rome.samples = [
    {
      peering,
      samples: ago.map((at, index) => ({
        at,
        rttMicros: 9_000 + 400 * (index % 7),
        packetLoss: index === 20 ? 4 : 0,
        received: 2_000_000 + 90_000 * (index % 5),
        sent: 300_000 + 20_000 * (index % 3),
      })),
    },
  ];
  const used = { cpuGranted: 2_000, memoryGranted: 4 * 2 ** 30 };
  milan.samples = [
    { peering, samples: ago.map((at, index) => ({ at, ...used, cpuUsed: 30 * index, memoryUsed: index * 2 ** 25 })) },
  ];
  await eventually(
    'the samples to be told',
    async () => ((await control.peerings.samples(adminOf(), peering, 'hour')).provider?.length ?? 0) > 50,
  );
  for (const look of looks) {
    const seen = await visit(browser, { url: console.url, ...look });
    await logIn(seen, console.key);
    readers.push({ ...seen, ...look });
  }
});
afterAll(async () => {
  await browser?.close();
  await console?.close();
});

const pages = [
  { name: 'map', hash: () => '#/map', shows: 'being set up or removed' },
  { name: 'clusters', hash: () => '#/clusters', shows: 'milan' },
  { name: 'cluster', hash: () => '#/cluster/milan', shows: 'Granted to consumers' },
  { name: 'peerings', hash: () => '#/peerings', shows: 'rome → milan' },
  { name: 'peering', hash: () => `#/peering/${peering}`, shows: 'Waiting for' },
  { name: 'join', hash: () => '#/join', shows: 'Show the lines' },
  { name: 'peer', hash: () => '#/peer', shows: 'Terms' },
  { name: 'sharing', hash: () => '#/sharing', shows: 'Approval rules' },
  { name: 'directory', hash: () => '#/directory', shows: 'default/milan' },
  { name: 'access', hash: () => '#/access', shows: 'API keys' },
  { name: 'deliveries', hash: () => '#/deliveries', shows: 'Event targets' },
  { name: 'webhook', hash: () => `#/webhook/${webhook}`, shows: 'Deliveries' },
  { name: 'audit', hash: () => '#/audit', shows: 'peering.' },
  { name: 'events', hash: () => '#/events', shows: 'peering.phase-changed.v1' },
];

test.each(pages)(
  '$name has no violation of axe in light and dark, on a screen and on a phone',
  async ({ name, hash, shows }) => {
    for (const { page, complaints, dark, narrow } of readers) {
      await page.goto(`${console.url}/${hash()}`);
      await page.getByText(shows).first().waitFor();
      await mustBeAccessible(page, `${name}, ${dark ? 'dark' : 'light'}, ${narrow ? 'narrow' : 'wide'}`);
      const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      expect(await page.evaluate(overflow), `${name} scrolls sideways`).toBe(0);
      if (!dark && !narrow) await page.screenshot({ path: path.join(pictures, `${name}.png`) });
      expect(complaints).toEqual([]);
    }
  },
);

const dialogs = [
  { name: 'the form of a new key', hash: () => '#/access', opens: 'Make a key' },
  { name: 'the question before unpeering', hash: () => `#/peering/${peering}`, opens: 'Unpeer' },
  { name: 'the login', hash: () => '#/map', opens: 'Log out' },
];

test.each(dialogs)('$name has no violation of axe in light and dark', async ({ name, hash, opens }) => {
  for (const dark of [false, true]) {
    const seen = await visit(browser, { url: console.url, dark });
    await logIn(seen, console.key);
    await seen.page.goto(`${console.url}/${hash()}`);
    await seen.page.getByRole('button', { name: opens, exact: true }).click();
    await (opens === 'Log out' ? seen.page.getByLabel('API key') : seen.page.getByRole('dialog')).waitFor();
    await mustBeAccessible(seen.page, `${name}, ${dark ? 'dark' : 'light'}`);
    expect(seen.complaints).toEqual([]);
    await seen.close();
  }
});

test('what was measured of a peering and of a cluster is drawn for the last hour and day, in words, and as a table', async () => {
  for (const { page, complaints, dark, narrow } of readers) {
    await page.goto(`${console.url}/#/peering/${peering}`);
    const picture = page.getByRole('img', { name: /^Throughput: rome to milan from .* milan to rome from 2\.0 MB\/s/ });
    await picture.waitFor();
    expect(await picture.locator('path').count()).toBe(2);
    for (const title of ['Round trip', 'Loss', 'CPU', 'Memory'])
      await page.getByRole('img', { name: new RegExp(`^${title}: `) }).waitFor();
    if (!dark && !narrow)
      await page.getByRole('region', { name: 'Lately' }).screenshot({ path: path.join(pictures, 'graphs.png') });
    await page.getByText('Round trip as a table').click();
    const rows = page.getByRole('region', { name: 'Figures: Round trip' }).getByRole('row');
    await rows.nth(50).waitFor();
    await mustBeAccessible(page, 'the figures of a graph');
    await page.getByRole('button', { name: 'Last day' }).click();
    await rows.nth(6).waitFor({ state: 'detached' });
    await page.goto(`${console.url}/#/cluster/milan`);
    await page.getByRole('img', { name: /^CPU: granted from 2 cores to 2 cores/ }).waitFor();
    await page.goto(`${console.url}/#/cluster/turin`);
    await page.getByText('has no peering').waitFor();
    expect(await page.getByRole('region', { name: 'Lately' }).count()).toBe(0);
    expect(complaints).toEqual([]);
  }
});

test('the map draws the throughput of a link as its width, and says it', async () => {
  const [{ page } = readers[0]!] = readers;
  await page.goto(`${console.url}/#/map`);
  const edge = page.locator(`a.edge[data-id="${peering}"]`);
  await edge.waitFor();
  expect(await edge.getAttribute('aria-label')).toMatch(/link Connected, 2\.\d MB\/s$/);
  expect(await edge.locator('path.line').getAttribute('stroke-width')).toBe('5');
});
