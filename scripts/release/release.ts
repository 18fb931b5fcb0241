/** Makes all artefacts of a release from a commit: image, command line, chart, checksums, and what package managers install by. */

import type { KeyObject } from 'node:crypto';
import { sign } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type AgentImage, buildAgentImage, sourceOf } from '#scripts/image/agent-image.ts';
import { compressionBy } from '#scripts/image/compression.ts';
import { writeDocuments } from '#scripts/image/inventory.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import { runCommand } from '#scripts/setup/run-command.ts';
import { type TarEntry, writeTar } from '#shared/archive/tar.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { bundleCli, packCli } from './cli-package.ts';
import { checksums, homebrewFormula, krewManifest, sha256 } from './documents.ts';
import { buildExecutables, type System, systems } from './executables.ts';

export interface ReleaseOptions {
  readonly root: string;
  readonly cache: string;
  /** Emptied first. */
  readonly out: string;
  /** Where the files will be published, without a slash at the end; without it, nothing is written for Homebrew and krew. */
  readonly url?: string;
  /** Systems to make single executables for; all unless told. */
  readonly executables?: readonly System[];
  /** Signs the checksums. */
  readonly key?: KeyObject;
  readonly log: (line: string) => void;
}

export interface Released {
  readonly version: string;
  readonly image: AgentImage;
  /** Names in `out`. */
  readonly files: readonly string[];
}

export async function release(options: ReleaseOptions): Promise<Released> {
  const { root, cache, out, url, key, log } = options;
  const { commit, dirty } = await sourceOf(root);
  if (dirty || commit === undefined) {
    throw new AppError(
      'invalid_input',
      commit === undefined
        ? `${root} is no git repository: a release is made from a commit`
        : 'the tree has changes besides its commit: commit, stash or remove what `git status` shows',
    );
  }
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as Record<string, string>;
  const { version = '', description = '' } = manifest;
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  log(`release ${version} of ${commit}`);
  const image = await buildAgentImage(root, { architectures: ['amd64', 'arm64'], cache, log });
  copyFileSync(image.tarPath, path.join(out, `isthmus-agent-${version}.tar`));
  writeDocuments(out, image);
  const node = await ensureNode24({ root, cache, log });
  const archive = async (name: string, entries: readonly TarEntry[]): Promise<void> => {
    const packed = await compressionBy('gzip', node).compress(writeTar(entries));
    writeFileSync(path.join(out, name), packed);
  };
  await packCli(root, out);
  const license = readFileSync(path.join(root, 'LICENSE'));
  const whole = await bundleCli(root, { whole: true });
  const program = Buffer.concat([Buffer.from('#!/usr/bin/env node\n'), ...whole.map(({ content }) => content)]);
  const krew = `kubectl-isthmus-${version}.tar.gz`;
  await archive(krew, [
    { name: 'LICENSE', mode: 0o644, kind: 'file', content: license },
    { name: 'kubectl-isthmus', mode: 0o755, kind: 'file', content: program },
  ]);
  if (existsSync(path.join(root, 'charts', 'isthmus', 'Chart.yaml'))) {
    await archive(`isthmus-chart-${version}.tgz`, await chartEntries(root));
  } else log('charts/isthmus has no Chart.yaml: no chart');
  const programs = await buildExecutables({ root, cache, log }, options.executables ?? systems);
  for (const [system, content] of programs)
    await archive(`isthmus-${version}-${system}.tar.gz`, [
      { name: 'LICENSE', mode: 0o644, kind: 'file', content: license },
      { name: system.startsWith('windows') ? 'isthmus.exe' : 'isthmus', mode: 0o755, kind: 'file', content },
    ]);
  if (url !== undefined) {
    const about = { version, description, homepage: url };
    const at = (name: string) => ({ url: `${url}/${name}`, sha256: sha256(readFileSync(path.join(out, name))) });
    writeFileSync(path.join(out, 'isthmus.rb'), homebrewFormula(about, at(`isthmus-${version}.tgz`)));
    writeFileSync(path.join(out, 'isthmus.krew.yaml'), krewManifest(about, at(krew)));
  } else log('no --url: nothing for Homebrew and krew, which install from where the files are published');
  const files = readdirSync(out).sort();
  const sums = checksums(Object.fromEntries(files.map((name) => [name, readFileSync(path.join(out, name))])));
  writeFileSync(path.join(out, 'SHA256SUMS'), sums);
  if (key !== undefined) {
    const signature = sign('sha256', Buffer.from(sums), key).toString('base64');
    writeFileSync(path.join(out, 'SHA256SUMS.sig'), signature);
  }
  return { version, image, files: readdirSync(out).sort() };
}

/** As `helm package` arranges it: everything that git has of the chart, below its name. */
async function chartEntries(root: string): Promise<readonly TarEntry[]> {
  const listed = await runCommand('git', ['ls-files', '-z', '--', 'charts/isthmus'], { cwd: root });
  const names = listed.split('\0').filter((name) => name !== '');
  return names.sort().map((name) => ({
    name: path.posix.relative('charts', name),
    mode: 0o644,
    kind: 'file' as const,
    content: readFileSync(path.join(root, name)),
  }));
}
