import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { capturedIo, isthmus } from '#cli/captured-io.ts';
import { createProgram } from '#cli/program.ts';
import { findKubeconfig, loadKubeconfig } from './kubeconfig-files.ts';

interface Entry {
  readonly cluster: string;
  readonly server: string;
  readonly current?: string;
}

const kubeconfig = ({ cluster, server, current = cluster }: Entry): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: cluster, cluster: { server } }],
    users: [{ name: cluster, user: { token: 'secret' } }],
    contexts: [{ name: cluster, context: { cluster, user: cluster } }],
    'current-context': current,
  });

let dir: string;
let rome: string;
let milan: string;
let home: string;
/** Nothing listens on port 1 of loopback. */
const server = (n: number) => `https://127.0.0.${n}:1`;
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-kubeconfig-'));
  [rome, milan, home] = [path.join(dir, 'rome'), path.join(dir, 'milan'), path.join(dir, 'home')];
  await mkdir(path.join(home, '.kube'), { recursive: true });
  await writeFile(rome, kubeconfig({ cluster: 'rome', server: server(1) }));
  await writeFile(milan, kubeconfig({ cluster: 'milan', server: server(2) }));
  await writeFile(path.join(home, '.kube', 'config'), kubeconfig({ cluster: 'usual', server: server(3) }));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

describe('the kubeconfig of a command', () => {
  test('is the one of the flag, then of KUBECONFIG, then ~/.kube/config', () => {
    const env = { KUBECONFIG: milan };
    expect(findKubeconfig(rome, { env, home })).toEqual({ kubeconfig: rome, source: '--kubeconfig' });
    expect(findKubeconfig(undefined, { env, home })).toEqual({ kubeconfig: milan, source: 'KUBECONFIG' });
    for (const empty of [{}, { KUBECONFIG: '' }, { KUBECONFIG: path.delimiter }]) {
      expect(findKubeconfig(undefined, { env: empty, home })).toEqual({
        kubeconfig: path.join(home, '.kube', 'config'),
        source: '~/.kube/config',
      });
    }
  });

  test('is asked for when none of them is there', () => {
    expect(() => findKubeconfig(undefined, { env: {}, home: dir })).toThrow(
      `no kubeconfig: KUBECONFIG is not set and ${path.join(dir, '.kube', 'config')} does not exist`,
    );
  });

  test('of several files has the clusters of all, and the first says which is current', async () => {
    const merged = [path.join(dir, 'absent'), rome, milan].join(path.delimiter);
    const config = await loadKubeconfig({ kubeconfig: merged });
    expect(config).toMatchObject({ contexts: ['rome', 'milan'], context: 'rome', server: server(1) });
    const other = await loadKubeconfig({ kubeconfig: merged, context: 'milan' });
    expect(other).toMatchObject({ context: 'milan', server: server(2) });
  });

  test('finds the files that it names beside it, whichever file of several it is', async () => {
    await mkdir(path.join(dir, 'beside'), { recursive: true });
    const file = path.join(dir, 'beside', 'config');
    const text = kubeconfig({ cluster: 'beside', server: server(5) });
    await writeFile(file, text.replace('{"server"', '{"certificate-authority":"ca.pem","server"'));
    const both = { kubeconfig: [rome, file].join(path.delimiter), context: 'beside' };
    const config = await loadKubeconfig(both);
    expect(config.text).toContain(
      JSON.stringify({ 'certificate-authority': path.join(dir, 'beside', 'ca.pem') }).slice(1, -1),
    );
    const { code, err } = await isthmus(['describe', 'pod', 'shop/web-0', '--kubeconfig', file]);
    expect([code, err]).toEqual([2, expect.stringContaining('the credentials of context beside do not work: ENOENT')]);
  });

  test('takes a name that two files have from the first', async () => {
    const second = path.join(dir, 'second');
    await writeFile(second, kubeconfig({ cluster: 'rome', server: server(9), current: 'rome' }));
    const config = await loadKubeconfig({ kubeconfig: [rome, second].join(path.delimiter) });
    expect(config).toMatchObject({ contexts: ['rome'], server: server(1) });
  });

  test('takes the current context from the first file that has one', async () => {
    const silent = path.join(dir, 'silent');
    await writeFile(silent, kubeconfig({ cluster: 'silent', server: server(4), current: '' }));
    const config = await loadKubeconfig({ kubeconfig: [silent, milan].join(path.delimiter) });
    expect(config.context).toBe('milan');
  });

  test.each([
    { what: 'a file that does not exist', files: () => [path.join(dir, 'absent')] },
    { what: 'files of which none exists', files: () => [path.join(dir, 'absent'), path.join(dir, 'gone')] },
  ])('is refused when it names $what', async ({ files }) => {
    await expect(loadKubeconfig({ kubeconfig: files().join(path.delimiter) })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('cannot be read'),
    });
  });
});

describe('a command', () => {
  test('that changes a cluster says first which one it is, and where that was found', async () => {
    const env = { KUBECONFIG: [rome, milan].join(path.delimiter) };
    const { code, err } = await isthmus(['uninstall'], { env });
    expect(err.split('\n')[0]).toBe(`acting on context rome at ${server(1)}, from KUBECONFIG ${env.KUBECONFIG}`);
    expect([code, err]).toEqual([
      7,
      expect.stringContaining(`the API server ${server(1)} is not reachable: connect ECONNREFUSED`),
    ]);

    const named = await isthmus(['uninstall', '--context', 'milan'], { env });
    expect(named.err).toContain(`acting on context milan at ${server(2)}`);
    const usual = await isthmus(['rotate-key'], { home });
    expect(usual.err).toContain(`acting on context usual at ${server(3)}, from ~/.kube/config`);
    const flag = await isthmus(['rotate-key', '--kubeconfig', milan], { env });
    expect(flag.err).toContain(`acting on context milan at ${server(2)}, from ${milan}`);
  });

  test('that only reads one says nothing of the kind', async () => {
    const { err } = await isthmus(['describe', 'pod', 'shop/web-0'], { env: { KUBECONFIG: rome } });
    expect(err).not.toContain('acting on');
    expect(err).toContain(`the API server ${server(1)} is not reachable: connect ECONNREFUSED`);
  });

  test('without any kubeconfig says what it looked for', async () => {
    const { code, err } = await isthmus(['unoffload', 'namespace', 'shop'], { home: dir });
    expect(code).toBe(2);
    expect(err).toContain('no kubeconfig: KUBECONFIG is not set');
    expect(err).toContain('to do: name one with --kubeconfig FILE, or set KUBECONFIG');
  });

  test('asks for a kubeconfig only where a second cluster is meant, or where its absence has a meaning', async () => {
    const mandatory: string[] = [];
    const unsettled: string[] = [];
    const visit = (command: Awaited<ReturnType<typeof createProgram>>, names: readonly string[]): void => {
      for (const option of command.options) {
        const line = [...names, option.long].join(' ');
        if (!/^kubeconfig of|side that is left/.test(option.description)) continue;
        if (option.mandatory) mandatory.push(line);
        else if (option.long === '--kubeconfig' && !option.description.includes('default:')) unsettled.push(line);
      }
      for (const child of command.commands) visit(child, [...names, child.name()]);
    };
    visit(await createProgram(capturedIo({})), []);
    expect(mandatory).toEqual(['network test --peer-kubeconfig', 'generate peering --provider']);
    expect(unsettled.sort()).toEqual(['leave --kubeconfig', 'unpeer --kubeconfig']);
  });
});
