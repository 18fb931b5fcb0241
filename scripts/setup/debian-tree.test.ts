import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findInTree } from './debian-tree.ts';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-tree-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const made = (name: string, files: readonly string[], links: Readonly<Record<string, string>> = {}) => {
  const folder = path.join(scratch, name);
  const parent = (file: string): void => void mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  for (const file of files) {
    parent(file);
    writeFileSync(path.join(folder, file), name);
  }
  for (const [link, target] of Object.entries(links)) {
    parent(link);
    symlinkSync(target, path.join(folder, link));
  }
  return { name, version: '1', folder };
};

const tree = {
  packages: [
    made('libc6', ['/lib/arch/ld.so'], { '/lib64/ld.so': '/lib/arch/ld.so', '/lib64/loop': '/lib64/loop' }),
    made('libz', ['/usr/lib/arch/libz.so.1.2'], { '/usr/lib/arch/libz.so.1': 'libz.so.1.2' }),
    made('alias', [], { '/usr/bin/other': '../../lib/arch/ld.so' }),
  ],
};

test.each([
  { path: '/lib/arch/ld.so', from: 'libc6', why: 'as it is' },
  { path: '/lib64/ld.so', from: 'libc6', why: 'through an absolute link' },
  { path: '/usr/lib/arch/libz.so.1', from: 'libz', why: 'through a relative link' },
  { path: '/lib/arch/libz.so.1', from: 'libz', why: 'below /usr, to which Debian merged /lib' },
  { path: '/usr/bin/other', from: 'libc6', why: 'in the package that a link of another one leads to' },
])('finds $path $why', ({ path: wanted, from }) => {
  expect(findInTree(tree, wanted)?.from.name).toBe(from);
});

test.each(['/lib/arch/none.so', '/lib64/loop', '/lib'])('finds no file %s', (wanted) => {
  expect(findInTree(tree, wanted)).toBeUndefined();
});
