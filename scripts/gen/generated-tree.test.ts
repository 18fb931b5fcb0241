import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { crdFiles, crdFolder } from './crd-files.ts';
import { generatedTree, refresh, staleFiles } from './generated-tree.ts';

const repository = path.resolve(import.meta.dirname, '../..');

it('the tree is clean: `npm run gen` would change nothing', async () => {
  expect(await staleFiles(repository, generatedTree())).toEqual([]);
});

describe('staleFiles and refresh', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(path.join(os.tmpdir(), 'isthmus-gen-'));
  });
  afterEach(async () => await rm(root, { recursive: true }));

  it('name what is missing, what differs and what nothing generates any more, and put all of it right', async () => {
    const tree = new Map([
      [`${crdFolder}/a.yaml`, 'a\n'],
      [`${crdFolder}/b.yaml`, 'b\n'],
      ['docs/reference/kinds.md', 'kinds\n'],
    ]);
    await refresh(root, tree, await staleFiles(root, tree));
    expect(await staleFiles(root, tree)).toEqual([]);

    await writeFile(path.join(root, crdFolder, 'a.yaml'), 'changed\n');
    await writeFile(path.join(root, crdFolder, 'old.yaml'), 'left over\n');
    await rm(path.join(root, 'docs/reference/kinds.md'));
    const stale = await staleFiles(root, tree);
    expect(stale).toEqual([
      { path: `${crdFolder}/a.yaml`, why: 'differs' },
      { path: `${crdFolder}/old.yaml`, why: 'no longer generated' },
      { path: 'docs/reference/kinds.md', why: 'missing' },
    ]);
    await refresh(root, tree, stale);
    expect(await staleFiles(root, tree)).toEqual([]);
  });
});

it('the YAML of a CRD reads back as the object it was written from', () => {
  for (const text of crdFiles().values()) {
    const read = parse(text);
    expect(read.metadata.name).toBe(`${read.spec.names.plural}.${read.spec.group}`);
  }
});
