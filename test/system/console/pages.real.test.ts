/** Every page of the console in Debian's Chromium: its content, accessibility in light and dark, the policy of the page, its pictures for the docs. */
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { logIn, mustBeAccessible, openBrowser, visit } from './browser.ts';
import { adminOf, type ConsoleBroker, startConsoleBroker } from './console-broker.ts';

let console: ConsoleBroker;
let browser: Browser;
let peering = '';
/** `ISTHMUS_PICTURES=docs/console` renews those of the docs. */
const pictures = path.resolve(repositoryRoot, process.env.ISTHMUS_PICTURES ?? '.build/console-pictures');

beforeAll(async () => {
  [console, browser] = await Promise.all([startConsoleBroker(), openBrowser()]);
  for (const name of ['rome', 'milan', 'turin']) await console.join(name);
  const { control } = console.broker();
  await control.clusters.label(adminOf(), 'rome', { labels: { tier: 'gold' } });
  const asked = { consumer: 'rome', provider: 'milan', resources: { cpu: '2', memory: '4Gi' } };
  peering = (await control.peerings.request(adminOf(), asked)).peering.id;
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
  { name: 'events', hash: () => '#/events', shows: 'peering.phase-changed.v1' },
];

test.each(pages)(
  '$name has no violation of axe in light and dark, on a screen and on a phone',
  async ({ name, hash, shows }) => {
    for (const dark of [false, true]) {
      for (const narrow of [false, true]) {
        const seen = await visit(browser, { url: console.url, dark, narrow });
        await logIn(seen, console.key);
        await seen.page.goto(`${console.url}/${hash()}`);
        await seen.page.getByText(shows).first().waitFor();
        await mustBeAccessible(seen.page, `${name}, ${dark ? 'dark' : 'light'}, ${narrow ? 'narrow' : 'wide'}`);
        const overflow = await seen.page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        expect(overflow, `${name} scrolls sideways`).toBe(0);
        if (!dark && !narrow) await seen.page.screenshot({ path: path.join(pictures, `${name}.png`) });
        expect(seen.complaints).toEqual([]);
        await seen.close();
      }
    }
  },
);
