/** Every page of the console in Debian's Chromium: its content, accessibility in light and dark, the policy of the page, its pictures for the docs. */
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { casesOf } from '#test/harness/cases.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { logIn, mustBeAccessible, openBrowser, type Visit, visit } from './browser.ts';
import { adminOf, type ConsoleBroker, startConsoleBroker } from './console-broker.ts';

let console: ConsoleBroker;
let browser: Browser;
const some = [
  { dark: false, narrow: false },
  { dark: true, narrow: true },
];
const looks = casesOf([...some, { dark: false, narrow: true }, { dark: true, narrow: false }], some);
/** One for each look, logged in. */
const readers: (Visit & { readonly dark: boolean; readonly narrow: boolean })[] = [];
let peering = '';
let webhook = '';
/** `ISTHMUS_PICTURES=docs/console` renews those of the docs. */
const pictures = path.resolve(repositoryRoot, process.env.ISTHMUS_PICTURES ?? '.build/console-pictures');

beforeAll(async () => {
  [console, browser] = await Promise.all([startConsoleBroker(), openBrowser()]);
  for (const name of ['rome', 'milan', 'turin']) await console.join(name);
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
