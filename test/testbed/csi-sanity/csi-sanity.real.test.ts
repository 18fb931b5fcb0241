import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { type GinkgoReport, outcomesOf, pendingSpecs } from '#test/harness/ginkgo-report.ts';
import { run } from '#test/harness/program.ts';
import { buildCsiSanity, buildLoopbox } from '../build.ts';
import { devicesBehind } from '../loop-devices.ts';
import { storageDriver } from '../storage-addons.ts';
import { notOffered } from './not-offered.ts';

const dir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-sanity-'));
const volumes = path.join(dir, 'volumes');
const socket = path.join(dir, 'kubelet', 'plugins', storageDriver, 'csi.sock');
const log = path.join(dir, 'loopbox.log');
const mebi = 2 ** 20;
let sanity: string;
let driver: ChildProcess;

/** The driver has a mount namespace, which ends with it; so does the driver with this process. */
beforeAll(async () => {
  sanity = await buildCsiSanity();
  const loopbox = await buildLoopbox();
  mkdirSync(path.join(dir, 'kubelet'));
  const output = openSync(log, 'a');
  const args = ['--node=sanity-1', `--volumes=${volumes}`, `--kubelet=${path.join(dir, 'kubelet')}`];
  const alone = ['--pdeathsig', 'KILL', 'unshare', '--mount', '--propagation', 'private'];
  driver = spawn('setpriv', [...alone, loopbox, ...args], { stdio: ['ignore', output, output] });
  await eventually(`the driver listens (${log})`, () => existsSync(socket), { everyMs: 20 });
}, 600_000);

afterAll(async () => {
  const exited = new Promise((resolve) => driver.once('exit', resolve));
  driver.kill('SIGKILL');
  await exited;
  for (const device of await devicesBehind(volumes)) await run('losetup', ['--detach', device]);
  rmSync(dir, { recursive: true, force: true });
});

const inItsMounts = (program: string, ...args: string[]) =>
  run('nsenter', [`--target=${driver.pid}`, '--mount', program, ...args], { timeoutMs: 110_000 });

async function ask(accessType: 'mount' | 'block'): Promise<{ report: GinkgoReport; code: number; printed: string }> {
  const report = path.join(dir, `${accessType}.json`);
  const ended = await inItsMounts(
    sanity,
    `--csi.endpoint=${socket}`,
    `--csi.mountdir=${path.join(dir, 'published')}`,
    `--csi.stagingdir=${path.join(dir, 'staged')}`,
    `--csi.testvolumeaccesstype=${accessType}`,
    `--csi.testvolumesize=${32 * mebi}`,
    `--csi.testvolumeexpandsize=${64 * mebi}`,
    '--ginkgo.no-color',
    `--ginkgo.json-report=${report}`,
  );
  const printed = `${ended.stdout}${ended.stderr}${readFileSync(log, 'utf8')}`;
  expect(existsSync(report), printed).toBe(true);
  return { report: JSON.parse(readFileSync(report, 'utf8')) as GinkgoReport, code: ended.code, printed };
}

/** The suite has it, and runs it on no driver. */
const neverRun = [
  'Controller Service [Controller Server] ListVolumes pagination should detect volumes added between pages and accept tokens when the last volume from a page is deleted',
];
const offeredSpecs = 61;

describe.each(['mount', 'block'] as const)('the test bed driver with volumes of access type %s', (accessType) => {
  test('passes csi-sanity, of which only that is skipped which it does not offer, and leaves nothing behind', async () => {
    const { report, code, printed } = await ask(accessType);
    const outcomes = outcomesOf(report);
    expect(outcomes.filter(({ state }) => state === 'failed')).toEqual([]);
    expect(code, printed).toBe(0);

    const skipped = outcomes.filter(({ state }) => state === 'not applicable');
    expect(skipped.map(({ spec }) => spec).sort()).toEqual(
      Object.values(notOffered)
        .flatMap(({ specs }) => specs)
        .sort(),
    );
    for (const { message } of skipped) expect(message).toMatch(/ not supported$/);
    expect(pendingSpecs(report)).toEqual(neverRun);
    expect(outcomes.filter(({ state }) => state === 'passed')).toHaveLength(offeredSpecs);

    expect(readdirSync(volumes)).toEqual([]);
    expect(await devicesBehind(volumes)).toEqual([]);
    expect((await inItsMounts('cat', '/proc/self/mounts')).stdout).not.toContain(dir);
  });
});
