import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openApiJson } from './open-api.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'isthmus-openapi-'));
  await mkdir(path.join(root, 'functions/api'), { recursive: true });
});
afterEach(async () => await rm(root, { recursive: true }));

const source = (text: string): Promise<void> => writeFile(path.join(root, 'functions/api/openapi.ts'), text);

it('writes what openApiDocument returns, and leaves no bundle behind', async () => {
  await writeFile(path.join(root, 'functions/api/title.ts'), "export const title: string = 'Isthmus';");
  await source(
    "import { title } from './title.ts';\nexport const openApiDocument = (): object => ({ openapi: '3.1.0', info: { title } });",
  );
  expect(await openApiJson(root)).toBe(
    `${JSON.stringify({ openapi: '3.1.0', info: { title: 'Isthmus' } }, null, 2)}\n`,
  );
  expect(await readdir(path.join(root, '.build/run'))).toEqual([]);
});

it('writes nothing while there is no source', async () => {
  expect(await openApiJson(root)).toBeUndefined();
});

it('refuses a source without openApiDocument', async () => {
  await source('export const other = 1;');
  await expect(openApiJson(root)).rejects.toThrow('openApiDocument');
});
