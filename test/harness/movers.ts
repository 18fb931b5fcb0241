/** The movers of volumes as processes of their own over loopback, with rsync as the image has it, and keys as a move makes them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { bundleAgent } from '#scripts/image/bundle.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureDebianTree, findInTree } from '#scripts/setup/debian-tree.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

/** A folder with a slash at its end, or a block device, on each side. */
export interface Volumes {
  readonly from: string;
  readonly to: string;
}

export interface MoverCall {
  /** `foreign`: of neither mover. */
  readonly keys: 'send' | 'fetch' | 'foreign';
  readonly data: string;
  /** At the mover that sends. */
  readonly source: string;
  readonly args: readonly string[];
  readonly rsync?: string;
}

export class Movers {
  readonly #root: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #children: ChildProcess[] = [];
  readonly rsync: string;

  private constructor(root: string, rsync: string, environment: Readonly<Record<string, string>>) {
    this.#root = root;
    this.rsync = rsync;
    this.#environment = environment;
  }

  /** `port`: of the one that sends; files that run at the same time take different ones. */
  static async start(port: number): Promise<Movers> {
    const root = mkdtempSync(path.join(os.tmpdir(), 'isthmus-mover-'));
    const packages = ['rsync'];
    const debian = await ensureDebianTree({ architecture: 'amd64', packages, cache: cacheDir(), log: () => undefined });
    const rsync = findInTree(debian, '/usr/bin/rsync')?.file ?? '';
    const libraries = debian.packages.flatMap(({ folder }) => [
      `${folder}/usr/lib/x86_64-linux-gnu`,
      `${folder}/lib/x86_64-linux-gnu`,
    ]);
    const { files } = await bundleAgent(repositoryRoot, '0.0.0');
    writeFileSync(path.join(root, 'mover.mjs'), files.find(({ name }) => name === 'mover.mjs')?.content ?? '');
    const now = Date.now();
    const [send, fetch, foreign] = [1, 2, 3].map(() => issueServingCertificate(['isthmus-mover'], now));
    for (const [name, own, peer] of [
      ['send', send, fetch],
      ['fetch', fetch, send],
      ['foreign', foreign, send],
    ] as const) {
      mkdirSync(path.join(root, name));
      writeFileSync(path.join(root, name, 'own.crt'), own?.certificate ?? '');
      writeFileSync(path.join(root, name, 'own.key'), own?.privateKey ?? '');
      writeFileSync(path.join(root, name, 'peer.crt'), peer?.certificate ?? '');
    }
    return new Movers(root, rsync, {
      ISTHMUS_MOVER_RSYNC: rsync,
      ISTHMUS_MOVER_PORT: String(port),
      LD_LIBRARY_PATH: libraries.join(':'),
    });
  }

  /** What rsync itself needs to run. */
  get libraries(): Readonly<Record<string, string>> {
    return { LD_LIBRARY_PATH: this.#environment.LD_LIBRARY_PATH ?? '' };
  }

  at(...parts: readonly string[]): string {
    return path.join(this.#root, ...parts);
  }

  run({ keys, data, source, args, rsync }: MoverCall): ChildProcess {
    const child = spawn(process.execPath, [this.at('mover.mjs'), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        ...this.#environment,
        ...(rsync !== undefined && { ISTHMUS_MOVER_RSYNC: rsync }),
        ISTHMUS_MOVER_KEYS: this.at(keys),
        ISTHMUS_MOVER_DATA: data,
        ISTHMUS_MOVER_SOURCE: source,
        ISTHMUS_MOVER_RESULT: this.at('result'),
      },
    });
    this.#children.push(child);
    return child;
  }

  serve({ from }: Volumes): ChildProcess {
    return this.run({ keys: 'send', data: from, source: from, args: ['serve'] });
  }

  /** Resolves with what the mover left as its result. */
  async fetch({ from, to }: Volumes, role: 'live' | 'final'): Promise<Record<string, unknown>> {
    rmSync(this.at('result'), { force: true });
    await ended(this.run({ keys: 'fetch', data: to, source: from, args: [role, '127.0.0.1'] }));
    return this.result();
  }

  result(): Record<string, unknown> {
    return JSON.parse(readFileSync(this.at('result'), 'utf8')) as Record<string, unknown>;
  }

  /** Kills all that run. */
  stop(): void {
    for (const child of this.#children.splice(0)) child.kill('SIGKILL');
  }

  close(): void {
    this.stop();
    rmSync(this.#root, { recursive: true, force: true });
  }
}

export const ended = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => {
    if (child.exitCode !== null) resolve(child.exitCode);
    else child.once('exit', resolve);
  });
