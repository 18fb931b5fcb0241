/** Debian's Chromium for tests of the console: pages that fail a test on an error in the script, a breach of the policy or a foreign request. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import axe from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { openBrowserNetwork } from './browser-network.ts';

export async function openBrowser(): Promise<Browser> {
  const network = await openBrowserNetwork();
  const dir = await mkdtemp(path.join(tmpdir(), 'isthmus-browser-'));
  const executablePath = path.join(dir, 'chromium');
  await writeFile(executablePath, `#!/bin/sh\nexec ${network.command.join(' ')} /usr/bin/chromium "$@"\n`, {
    mode: 0o755,
  });
  const left = async (): Promise<void> => {
    network.close();
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const browser = await chromium.launch({
      executablePath,
      proxy: { server: network.proxy },
      args: ['--no-sandbox', '--force-color-profile=srgb', '--disable-breakpad', '--disable-crash-reporter'],
    });
    browser.on('disconnected', () => void left());
    return browser;
  } catch (error) {
    await left();
    throw error;
  }
}

export interface Visit {
  readonly page: Page;
  /** What the browser complained of: uncaught errors, breaches of the content security policy, requests to other origins. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

export interface VisitOptions {
  readonly url: string;
  readonly dark?: boolean;
  /** Of a phone. */
  readonly narrow?: boolean;
}

/** A reader of their own: nothing is shared with other visits. */
export async function visit(browser: Browser, { url, dark = false, narrow = false }: VisitOptions): Promise<Visit> {
  const context = await browser.newContext({
    // The broker's own authority is in no browser.
    ignoreHTTPSErrors: true,
    colorScheme: dark ? 'dark' : 'light',
    viewport: narrow ? { width: 375, height: 740 } : { width: 1200, height: 800 },
    timezoneId: 'Europe/Rome',
    locale: 'en-GB',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const complaints: string[] = [];
  const { origin } = new URL(url);
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (/Content Security Policy/i.test(message.text())) complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) complaints.push(`request to ${request.url()}`);
  });
  await page.goto(`${url}/`);
  return { page, complaints, close: () => context.close() };
}

export async function logIn({ page }: Visit, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Log out' }).waitFor();
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly help: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
  }[];
}

/** By the rules of WCAG 2.2 AA and axe's best practices. */
export async function mustBeAccessible(page: Page, what: string): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run(document)')) as AxeResult;
  const found = violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary ?? ''}`).join(' | ')}`,
  );
  expect(found, what).toEqual([]);
}
