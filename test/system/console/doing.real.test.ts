/** What a tenant does, by clicks only, in Debian's Chromium: a real broker, agents that are simulated and talk to it as real ones do. */

import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { logIn, openBrowser, type Visit, visit } from './browser.ts';
import { adminOf, type ConsoleBroker, startConsoleBroker } from './console-broker.ts';

let console: ConsoleBroker;
let browser: Browser;
const visits: Visit[] = [];

beforeAll(async () => {
  [console, browser] = await Promise.all([startConsoleBroker(), openBrowser()]);
});
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') {
    // What the reader of the report would want to see.
    for (const [at, { page }] of visits.entries()) {
      await page.screenshot({ path: path.join(repositoryRoot, '.build', 'console-failures', `${task.id}-${at}.png`) });
    }
  }
  const complaints = visits.flatMap((each) => each.complaints);
  for (const each of visits.splice(0)) await each.close();
  expect(complaints).toEqual([]);
});
afterAll(async () => {
  await browser?.close();
  await console?.close();
});

async function reader(key: string): Promise<Page> {
  const seen = await visit(browser, { url: console.url });
  visits.push(seen);
  await logIn(seen, key);
  return seen.page;
}
const open = (page: Page, name: string): Promise<void> =>
  page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
const click = (page: Page, name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
const fill = (page: Page, label: string, text: string): Promise<void> =>
  page.getByLabel(label, { exact: true }).fill(text);
const choose = async (page: Page, label: string, value: string): Promise<void> => {
  await page.getByLabel(label, { exact: true }).selectOption(value);
};
const sees = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor();
const heading = (page: Page, name: string): Promise<void> => page.getByRole('heading', { name, level: 1 }).waitFor();

async function made(tenant: string, consumer: string, provider: string): Promise<void> {
  for (const name of [consumer, provider]) await console.join(name, { tenant });
  await console.broker().control.peerings.request(adminOf(tenant), { consumer, provider, resources: { cpu: '1' } });
}

test('an empty tenant is led from joining two clusters to peering them, and unpeers when the names are typed', async () => {
  const page = await reader(await console.keyOf('admin', 'fresh'));
  await sees(page, 'No cluster has joined yet.');
  await sees(page, 'isthmus join rome --kubeconfig rome.kubeconfig');
  await page.getByRole('link', { name: 'Join a cluster' }).click();

  await fill(page, 'Name of the cluster', 'rome');
  await click(page, 'Show the lines');
  await sees(page, new RegExp(`isthmus login ${console.url} --ca-hash [0-9a-f]{64} --key KEY`));
  await sees(page, /Waiting for the agent of rome, at most 15 minutes, \d+ s/);
  await console.join('rome', { tenant: 'fresh' });
  await sees(page, /rome has arrived/);
  await click(page, 'Make a key for it');
  await sees(page, /--key isk_/);
  // Each cluster has a key of its own.
  await fill(page, 'Name of the cluster', 'milan');
  await click(page, 'Show the lines');
  await page.getByRole('button', { name: 'Make a key for it', exact: true }).waitFor();
  await console.join('milan', { tenant: 'fresh' });

  await open(page, 'Peerings');
  await page.getByRole('link', { name: 'Peer two clusters', exact: true }).click();
  await choose(page, 'Consumer, which borrows', 'rome');
  await choose(page, 'Provider, which appears in the consumer as one more node', 'milan');
  await fill(page, 'CPU', '2');
  await fill(page, 'Labels', 'env=test');
  await click(page, 'Peer');
  await heading(page, 'rome → milan');
  await page.locator('.head .state', { hasText: 'Ready' }).waitFor();
  await sees(page, 'env=test');
  await sees(page, /Ready after \d/);

  await click(page, 'Unpeer');
  const dialog = page.getByRole('dialog');
  const confirm = dialog.getByRole('button', { name: 'Unpeer', exact: true });
  expect(await confirm.isDisabled()).toBe(true);
  await dialog.getByLabel('Type rome milan to go on').fill('rome milan');
  await confirm.click();
  await page.locator('.head .state', { hasText: 'Gone' }).waitFor();
});

test('two tenants in two browsers: one invites, the other redeems, and both see the peering become Ready', async () => {
  const acme = await reader(await console.keyOf('operator', 'acme'));
  const bolt = await reader(await console.keyOf('operator', 'bolt'));
  await console.join('oslo', { tenant: 'acme' });
  await console.join('kiel', { tenant: 'bolt' });

  await open(acme, 'Sharing');
  await click(acme, 'Invite');
  await fill(acme, 'CPU', '4');
  await click(acme, 'Make the invitation');
  const code = (await acme.getByRole('dialog').locator('code').last().textContent()) ?? '';
  expect(code).toMatch(/^isi_/);
  await click(acme, 'Done');

  await open(bolt, 'Sharing');
  await click(bolt, 'Redeem');
  await fill(bolt, 'Code', code);
  await bolt.getByRole('dialog').getByRole('button', { name: 'Peer', exact: true }).click();
  await heading(bolt, 'kiel → oslo');
  await bolt.locator('.head .state', { hasText: 'Ready' }).waitFor();
  await sees(bolt, 'oslo of acme');

  await sees(acme, 'bolt/kiel');
  await open(acme, 'Map');
  await acme.getByRole('link', { name: /kiel → oslo, Ready/ }).waitFor();
  expect(await acme.getByRole('link', { name: /^bolt\/kiel/ }).count()).toBe(1);
  expect(await bolt.getByText('acme/oslo').count()).toBe(0);
});

test('a published cluster is asked for, approved in words that the other tenant reads, and a rule approves the next one', async () => {
  const giver = await reader(await console.keyOf('admin', 'giver'));
  const taker = await reader(await console.keyOf('operator', 'taker'));
  await console.join('bern', { tenant: 'giver' });
  await console.join('graz', { tenant: 'taker' });
  await console.join('linz', { tenant: 'taker' });

  await open(giver, 'Directory');
  await click(giver, 'Publish');
  await fill(giver, 'Region', 'eu-1');
  await giver.getByRole('dialog').getByRole('button', { name: 'Publish', exact: true }).click();
  await sees(giver, 'giver/bern');

  const ask = async (consumer: string): Promise<void> => {
    await open(taker, 'Directory');
    await click(taker, 'Ask for it');
    await choose(taker, 'Consumer, a cluster of yours', consumer);
    await fill(taker, 'CPU', '1');
    await taker.getByRole('dialog').getByRole('button', { name: 'Ask', exact: true }).click();
    await heading(taker, 'Sharing');
  };
  await ask('graz');
  await sees(taker, 'pending');
  await open(giver, 'Sharing');
  await click(giver, 'Approve');
  await fill(giver, 'What you say to it', 'welcome');
  await giver.getByRole('dialog').getByRole('button', { name: 'Approve', exact: true }).click();
  await sees(taker, 'welcome');

  await click(giver, 'Make a rule');
  await fill(giver, 'Name', 'small ones');
  await fill(giver, 'Tenants', 'taker');
  await fill(giver, 'CPU', '2');
  await click(giver, 'Make the rule');
  await sees(giver, 'small ones');
  await ask('linz');
  await expect
    .poll(() => taker.getByRole('link', { name: 'Peering', exact: true }).count(), { timeout: 60_000 })
    .toBe(2);
});

test('a viewer sees everything and is offered nothing, and the broker refuses what the page does not offer', async () => {
  await made('watched', 'turin', 'genoa');
  const page = await reader(await console.keyOf('viewer', 'watched'));
  await open(page, 'Peerings');
  await page.getByRole('link', { name: 'turin → genoa' }).click();
  await page.locator('.head .state', { hasText: 'Ready' }).waitFor();
  for (const name of ['Unpeer', 'Edit labels'])
    expect(await page.getByRole('button', { name, exact: true }).count()).toBe(0);
  expect(await page.getByRole('link', { name: 'Change terms' }).count()).toBe(0);
  const entries = await page.getByRole('navigation').getByRole('link').allTextContents();
  expect(entries).toEqual(['Map', 'Clusters', 'Peerings', 'Sharing', 'Directory', 'Events']);
  for (const hash of ['#/join', '#/peer']) {
    await page.goto(`${console.url}/${hash}`);
    await sees(page, /needs a key with the role operator/);
  }
  const attempts = ['/v1/join-tokens', '/v1/keys', '/v1/webhooks', '/v1/invitations'];
  const statuses = await page.evaluate(
    `Promise.all(${JSON.stringify(attempts)}.map(async (at) => (await fetch(at, {
      method: 'POST', body: '{}', headers: { 'isthmus-console': '1', 'content-type': 'application/json' },
    })).status))`,
  );
  expect(statuses).toEqual(attempts.map(() => 403));
});

test('a broker that restarts is waited for, and the page goes on with its session and with what happened meanwhile', async () => {
  const page = await reader(console.key);
  await open(page, 'Clusters');
  await sees(page, 'No cluster has joined yet.');
  await console.stop();
  await sees(page, /The broker has not answered for \d+ s/);
  await console.start();
  await console.join('lodi');
  await page.getByRole('link', { name: 'lodi' }).waitFor();
  await page.getByText(/The broker has not answered/).waitFor({ state: 'detached' });
  await page.reload();
  await page.getByRole('link', { name: 'lodi' }).waitFor();
});

/** Answers as it is told. */
function receiver(): { readonly server: Server; status: number; readonly received: string[] } {
  const received: string[] = [];
  const own = {
    status: 200,
    received,
    server: createServer((request, response) => {
      received.push(String(request.headers['webhook-id']));
      request.resume();
      response.writeHead(own.status).end('as told');
    }),
  };
  return own;
}

test('a webhook is made, tested, shown with what its receiver answered, sent again, and deleted when its URL is typed', async () => {
  const hooks = receiver();
  await new Promise<void>((resolve) => hooks.server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(hooks.server.address() as AddressInfo).port}/hook`;
  try {
    const page = await reader(await console.keyOf('admin', 'hooked'));
    await open(page, 'Webhooks');
    await click(page, 'Make a webhook');
    await fill(page, 'URL', url);
    await click(page, 'Make the webhook');
    await sees(page, /^whsec_/);
    await click(page, 'Done');
    await page.getByRole('link', { name: url }).click();
    await click(page, 'Send a test event');
    await sees(page, /delivered: status 200, \d+ ms/);
    await page
      .getByRole('button', { name: /^Send again/ })
      .first()
      .click();
    await expect
      .poll(() => hooks.received.filter((id) => id === hooks.received.at(-1)).length, { timeout: 60_000 })
      .toBe(2);
    await click(page, 'Disable');
    await click(page, 'Enable');
    await page.getByRole('button', { name: /^Delete/ }).click();
    await page.getByLabel(`Type ${url} to go on`).fill(url);
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await sees(page, 'No webhook yet.');
  } finally {
    hooks.server.closeAllConnections();
    hooks.server.close();
  }
});

test('a key is made, shown once, rotated and revoked; a member is added and removed; the audit log has it all, also as a file', async () => {
  const page = await reader(await console.keyOf('admin', 'strict'));
  await open(page, 'Access');
  await click(page, 'Make a key');
  await fill(page, 'Name', 'anna');
  await click(page, 'Make the key');
  const secret = (await page.getByRole('dialog').locator('code').textContent()) ?? '';
  expect(secret).toMatch(/^isk_/);
  await click(page, 'Done');
  expect(await page.getByText(secret).count()).toBe(0);
  const other = await reader(secret);
  await sees(other, 'strict');

  await page.getByRole('button', { name: 'Revoke anna' }).click();
  await page.getByLabel('Type anna to go on').fill('anna');
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await sees(page, 'revoked');
  await other.getByLabel('API key').waitFor();

  await click(page, 'Add a member');
  await fill(page, 'Email', 'anna@example.com');
  await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
  await sees(page, 'anna@example.com');
  await page.getByRole('button', { name: 'Remove anna@example.com' }).click();
  await page.getByLabel('Type anna@example.com to go on').fill('anna@example.com');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  await sees(page, 'No member yet.');

  await open(page, 'Audit');
  await fill(page, 'Action', 'api-key.revoke');
  await click(page, 'Search');
  await expect.poll(() => page.locator('table.rows tbody tr').count(), { timeout: 60_000 }).toBe(1);
  const [download] = await Promise.all([page.waitForEvent('download'), click(page, 'Export as JSON lines')]);
  const lines = (await readFile(await download.path(), 'utf8')).trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).action)).toEqual(['api-key.revoke']);
});

test('the map is used by keyboard: each cluster is reached, tells what it is, and opens its panel', async () => {
  await made('seen', 'pisa', 'lucca');
  const page = await reader(await console.keyOf('viewer', 'seen'));
  const node = page.getByRole('link', { name: 'pisa, online, 3 nodes' });
  await node.focus();
  await page.keyboard.press('Enter');
  const panel = page.getByRole('complementary', { name: 'About the chosen cluster' });
  await panel.getByRole('link', { name: 'pisa → lucca' }).waitFor();
  await page.getByRole('link', { name: /pisa → lucca, Ready, link Connected/ }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', { name: 'About the chosen peering' }).waitFor();
  await page.getByLabel('Find').fill('lucca');
  await sees(page, '1 found');
});

test('the operator of the broker makes and suspends tenants, and sees nothing inside one', async () => {
  const key = await console.broker().control.tenants.operators.issue({ from: 'local', requestId: 'rq' });
  const page = await reader(key);
  await heading(page, 'Tenants');
  await click(page, 'Make a tenant');
  await fill(page, 'Name', 'novel');
  await click(page, 'Make the tenant');
  await sees(page, /^isk_/);
  await click(page, 'Done');
  await page.getByRole('button', { name: 'Suspend novel' }).click();
  await page.getByLabel('Type novel to go on').fill('novel');
  await page.getByRole('dialog').getByRole('button', { name: 'Suspend', exact: true }).click();
  await sees(page, 'suspended by the operator of the broker');
  expect(await page.getByRole('navigation').getByRole('link').allTextContents()).toEqual(['Tenants']);
});

test('a wrong key is refused in words, and logging out ends the session', async () => {
  const seen = await visit(browser, { url: console.url });
  visits.push(seen);
  await fill(seen.page, 'API key', 'isk_wrong');
  await click(seen.page, 'Log in');
  await seen.page.getByRole('alert').waitFor();
  await logIn(seen, console.key);
  await click(seen.page, 'Log out');
  await seen.page.getByLabel('API key').waitFor();
  await seen.page.reload();
  await seen.page.getByLabel('API key').waitFor();
});

const sessionsIn = async (page: Page): Promise<number> =>
  (await page.context().cookies()).filter(({ name }) => name.endsWith('isthmus-session')).length;

test('a page that is left right after the click logs out all the same', async () => {
  const page = await reader(await console.keyOf('viewer', 'hurried'));
  expect(await sessionsIn(page)).toBe(1);
  await click(page, 'Log out');
  await page.goto('about:blank');
  await expect.poll(() => sessionsIn(page), { timeout: 60_000 }).toBe(0);
});

test('a log-out that the broker does not hear is told, and the next one ends the session', async () => {
  const page = await reader(await console.keyOf('viewer', 'unheard'));
  await console.stop();
  await click(page, 'Log out');
  await page.getByRole('alert').getByText('You are still logged in').waitFor();
  expect(await sessionsIn(page)).toBe(1);
  await console.start();
  await click(page, 'Log out');
  await page.getByLabel('API key').waitFor();
  expect(await sessionsIn(page)).toBe(0);
});

test('where files come from a CDN there is no session: the key works until the page is loaded again', async () => {
  await made('hosted', 'nice', 'metz');
  const seen = await visit(browser, { url: console.url });
  visits.push(seen);
  const { page } = seen;
  // What S3 says of a path that it does not have.
  const denied = { status: 403, contentType: 'application/xml', body: '<Error><Code>AccessDenied</Code></Error>' };
  await page.route('**/console/session', (route) => route.fulfill(denied));
  await page.reload();
  await logIn(seen, await console.keyOf('viewer', 'hosted'));
  await open(page, 'Peerings');
  await page.getByRole('link', { name: 'nice → metz' }).waitFor();
  await click(page, 'Log out');
  await page.getByLabel('API key').waitFor();
  await logIn(seen, await console.keyOf('viewer', 'hosted'));
  await page.reload();
  await page.getByLabel('API key').waitFor();
});
