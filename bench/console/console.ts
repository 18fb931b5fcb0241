/**
 * The console with 500 clusters and 2,000 peerings in Debian's Chromium, on a real broker: milliseconds from an input to the picture that shows
 * its effect, for each kind of input; then how long the first picture of the map and the final one take.
 */
import type { Page } from 'playwright-core';
import { logIn, openBrowser, visit } from '#test/system/console/browser.ts';
import { adminOf, startConsoleBroker } from '#test/system/console/console-broker.ts';
import { type BenchOptions, type BenchResult, median, thisMachine } from '../result.ts';

const perCluster = 4;

export async function run({ root, runs = 5, clusters = 500, log }: BenchOptions): Promise<BenchResult> {
  const broker = await startConsoleBroker({ idle: true });
  const browser = await openBrowser();
  try {
    log(`${clusters} clusters and ${clusters * perCluster} peerings are made`);
    const name = (index: number): string => `c${String(index % clusters).padStart(3, '0')}`;
    for (let at = 0; at < clusters; at += 1) await broker.join(name(at));
    const { control } = broker.broker();
    for (let at = 0; at < clusters; at += 1) {
      for (const step of [1, 7, 31, 101].slice(0, perCluster)) {
        const pair = { consumer: name(at), provider: name(at + step), resources: { cpu: '1' } };
        await control.peerings.request(adminOf(), pair);
      }
    }
    const seen = await visit(browser, { url: broker.url });
    const { page } = seen;
    page.setDefaultTimeout(120_000);
    const began = performance.now();
    await logIn(seen, broker.key);
    await page.locator('svg.graph a.node').first().waitFor();
    const firstMap = performance.now() - began;
    await page.locator('svg.graph[data-settled=yes]').waitFor();
    const finalMap = performance.now() - began;
    log(`the map shows after ${firstMap.toFixed(0)} ms and stands still after ${finalMap.toFixed(0)} ms`);
    const samples: Record<string, number>[] = [];
    for (let count = 0; count < runs; count += 1) samples.push(await interactions(page, broker.url, count));
    const names = Object.keys(samples[0] ?? {});
    const phases = Object.fromEntries(names.map((each) => [each, median(samples.map((sample) => sample[each] ?? 0))]));
    const worst = samples.map((sample) => Math.max(...Object.values(sample)));
    return {
      name: 'console-interaction',
      unit: 'ms',
      value: median(worst),
      samples: worst,
      phases: { ...phases, 'first picture of the map': firstMap, 'map stands still': finalMap },
      raw: { clusters, peerings: clusters * perCluster, samples, complaints: seen.complaints },
      machine: thisMachine(root),
    };
  } finally {
    await browser.close();
    await broker.close();
  }
}

/** In the page: acts, waits until `done` holds, then for the picture. What the test program and the browser tell each other does not count. */
const timed = (act: string, done: string): string => `(async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  await frame();
  const began = performance.now();
  ${act};
  while (!(${done})) await frame();
  await frame();
  return performance.now() - began;
})()`;

const type = (text: string): string => `
  const field = document.querySelector('input[type=search]');
  field.value = ${JSON.stringify(text)};
  field.dispatchEvent(new Event('input', { bubbles: true }))`;

async function interactions(page: Page, url: string, count: number): Promise<Record<string, number>> {
  const measure = (act: string, done: string): Promise<number> => page.evaluate(timed(act, done));
  const cluster = `c${String(10 + count).padStart(3, '0')}`;
  await page.goto(`${url}/#/map`);
  await page.locator('svg.graph[data-settled=yes]').waitFor();
  const choose = await measure(
    `location.hash = document.querySelector('a.node[data-id=${cluster}]').getAttribute('href')`,
    `document.querySelector('aside h2')?.textContent.startsWith('${cluster}')`,
  );
  const find = await measure(
    type(cluster),
    `document.querySelector('[role=status]').textContent.includes(', 1 found')`,
  );
  const zoom = await measure(
    `const before = document.querySelector('svg.graph > g').getAttribute('transform'); [...document.querySelectorAll('button')].find((each) => each.textContent.trim() === 'Closer').click()`,
    `document.querySelector('svg.graph > g').getAttribute('transform') !== before`,
  );
  const table = await measure(
    `location.hash = '#/peerings'`,
    `document.querySelectorAll('table.rows tbody tr').length === 50`,
  );
  const filter = await measure(type(cluster), `document.querySelectorAll('table.rows tbody tr').length === 8`);
  const clear = await measure(type(''), `document.querySelectorAll('table.rows tbody tr').length === 50`);
  const sort = await measure(
    `[...document.querySelectorAll('button.sort')].find((each) => each.textContent.startsWith('Asked for')).click()`,
    `document.querySelector('th[aria-sort=ascending], th[aria-sort=descending]').textContent.startsWith('Asked for')`,
  );
  const open = await measure(
    `location.hash = document.querySelector('table.rows tbody a').getAttribute('href')`,
    `document.querySelector('h1').textContent.includes('→')`,
  );
  return {
    'choose a cluster on the map': choose,
    'find on the map': find,
    'zoom the map': zoom,
    'open the table of peerings': table,
    'filter the table': filter,
    'clear the filter': clear,
    'sort the table': sort,
    'open a peering': open,
  };
}
