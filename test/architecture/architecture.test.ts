/** Proves the import law, the file budgets and the shape of the tree on the files as they are. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { fileCycles, folderRings, importsOf } from './import-graph.ts';
import { bannedFileNames, budget, environmentReaders, importLaw, impureWords, overBudget, pureFile } from './law.ts';
import { breachOf, placeOf } from './layers.ts';

const root = path.resolve(import.meta.dirname, '../..');
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.tsx'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && !file.endsWith('.d.ts'));
const texts = new Map(files.map((file) => [file, read(file)]));

function read(file: string): string {
  try {
    return readFileSync(path.join(root, file), 'utf8');
  } catch {
    return ''; // listed by git, deleted in the work tree
  }
}

const imports = new Map(files.map((file) => [file, importsOf(file, texts.get(file) ?? '')]));
const runtimeImports = (file: string): string[] =>
  (imports.get(file) ?? []).filter(({ typeOnly }) => !typeOnly).map(({ to }) => to);

const rooms = /^(shared|kube|control|functions|infra|agent|cli|console)\//;
/** Data, such as a JSON file, imports nothing and closes no circle. */
const isModule = (file: string) => rooms.test(file) && /\.tsx?$/.test(file);
const isTesting = (file: string) => /(^|\/)testing\//.test(file);
const isProduct = (file: string) => isModule(file) && !isTest(file) && !isTesting(file);
const isTest = (file: string) => /\.(test|contract)\.ts$/.test(file) || file.startsWith('test/');

describe('the import law', () => {
  test.each(importLaw)('$because', (law) => {
    const breaches = files
      .filter((file) => law.from.test(file) && !law.except?.test(file) && !isTest(file))
      .flatMap((file) =>
        runtimeImports(file)
          .filter((target) => law.never.test(target))
          .map((target) => `${file} imports ${target}`),
      );
    expect(breaches, law.because).toEqual([]);
  });

  test('no import escapes it by a misspelt extension', () => {
    const odd = files.flatMap((file) =>
      runtimeImports(file)
        .filter((target) => rooms.test(target) && !/\.(tsx?|json|mjs)$/.test(target))
        .map((target) => `${file}: ${target}`),
    );
    expect(odd).toEqual([]);
  });
});

/** Imports of the product among its own modules; tests and what only they need are exempt. */
const product = [...imports.values()].flat().filter(({ from, to }) => isProduct(from) && isProduct(to));

describe('the order of the rooms', () => {
  test('has a place for every file', () => {
    const lost = files.filter((file) => isProduct(file) && placeOf(file) === undefined);
    expect(lost, 'name its folder in layers.ts').toEqual([]);
  });

  test('is kept by every import', () => {
    expect(product.map(breachOf).filter((breach) => breach !== undefined)).toEqual([]);
  });
});

describe('no circles', () => {
  test('of files, types included', () => {
    expect(fileCycles(product)).toEqual([]);
  });

  test('of folders, at run time', () => {
    expect(folderRings(product)).toEqual([]);
  });
});

describe('pure files', () => {
  test.each(impureWords)('take what they need instead of $word', ({ word, instead }) => {
    const breaches = files.filter((file) => pureFile.test(file) && !isTest(file) && word.test(texts.get(file) ?? ''));
    expect(breaches, instead).toEqual([]);
  });
});

test('only composition roots read the environment', () => {
  const readers = files.filter(
    (file) => !environmentReaders.test(file) && !isTest(file) && /\bprocess\.env\b/.test(texts.get(file) ?? ''),
  );
  expect(readers).toEqual([]);
});

test('zod is imported as a namespace, which a bundle can shake', () => {
  const barrels = files.filter((file) =>
    /import\s*\{\s*z\s*\}\s*from 'zod'/.test((texts.get(file) ?? '').replaceAll(/^.*`.*$/gm, '')),
  );
  expect(barrels.filter((file) => !file.startsWith('test/architecture/'))).toEqual([]);
});

test('two signals are joined by an abort scope, which lets go of the longer-lived one', () => {
  const joined = files.filter((file) => isProduct(file) && /AbortSignal\.any\(/.test(texts.get(file) ?? ''));
  expect(joined, 'use shared/async/abort-scope.ts').toEqual([]);
});

test('no file outgrows its budget without a reason', () => {
  const large = files
    .filter((file) => !(file in overBudget))
    .map((file) => ({ file, lines: (texts.get(file) ?? '').split('\n').length }))
    .filter(({ lines }) => lines > budget.stop);
  expect(large).toEqual([]);
});

test('files are named by their subject', () => {
  expect(files.filter((file) => bannedFileNames.test(file) || /[A-Z]/.test(path.basename(file)))).toEqual([]);
});

test('each module says in its first lines what it is for', () => {
  const silent = files.filter((file) => {
    const text = texts.get(file) ?? '';
    return text !== '' && !/\.test\.ts$/.test(file) && !/^(#![^\n]*\n)?(\/\*\*|\/\/)/.test(text);
  });
  expect(silent).toEqual([]);
});

test('no test mocks a module', () => {
  const word = ['vi', 'mock('].join('.');
  expect(files.filter((file) => (texts.get(file) ?? '').includes(word))).toEqual([]);
});
