/** Everything that `npm run gen` owns in the tree: what it should be, where it differs, and bringing it up to date. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { apiAnswers, apiAnswersPath, apiClient, apiClientPath } from './api-client.ts';
import { behavioursPage, behavioursPath, provingFiles, readBehaviours } from './behaviours-page.ts';
import { causesPage } from './causes-page.ts';
import { chartFiles } from './chart/files.ts';
import { crdFiles, crdFolder } from './crd-files.ts';
import { errorsPage } from './errors-page.ts';
import { eventSchemasJson, eventSchemasPath } from './event-schemas.ts';
import { eventsPage } from './events-page.ts';
import { functionsPage } from './functions-page.ts';
import { httpFunctionsJson, httpFunctionsPath } from './http-functions.ts';
import { kindsPage } from './kinds-page.ts';
import { metricsPage } from './metrics-page.ts';
import { monitoringFiles } from './monitoring-files.ts';
import { openApiJson, openApiPath } from './open-api.ts';

/** Path in the repository to content. */
export type Tree = ReadonlyMap<string, string>;

const repository = process.env.ISTHMUS_ROOT ?? path.resolve(import.meta.dirname, '../..');

export function generatedTree(): Tree {
  const openApi = openApiJson();
  return new Map([
    ...crdFiles(),
    ...chartFiles(),
    ['docs/reference/kinds.md', kindsPage()],
    ['docs/reference/errors.md', errorsPage()],
    ['docs/reference/causes.md', causesPage()],
    ['docs/reference/metrics.md', metricsPage()],
    ...monitoringFiles(),
    [httpFunctionsPath, httpFunctionsJson()],
    ['docs/reference/functions.md', functionsPage()],
    ['docs/events.md', eventsPage()],
    [behavioursPath, behavioursPage(readBehaviours(repository), provingFiles(repository))],
    [eventSchemasPath, eventSchemasJson()],
    [apiClientPath, apiClient()],
    [apiAnswersPath, apiAnswers()],
    [openApiPath, openApi],
  ]);
}

export interface Stale {
  readonly path: string;
  readonly why: 'missing' | 'differs' | 'no longer generated';
}

/** Sorted by path. Folders that hold generated files only are checked for leftovers too. */
export async function staleFiles(root: string, tree: Tree): Promise<readonly Stale[]> {
  const stale: Stale[] = [];
  for (const [file, content] of tree) {
    const found = await readFile(path.join(root, file), 'utf8').catch(undefinedWhenAbsent);
    if (found === undefined) stale.push({ path: file, why: 'missing' });
    else if (found !== content) stale.push({ path: file, why: 'differs' });
  }
  const inFolder = (await readdir(path.join(root, crdFolder)).catch(undefinedWhenAbsent)) ?? [];
  for (const name of inFolder) {
    if (!tree.has(`${crdFolder}/${name}`)) stale.push({ path: `${crdFolder}/${name}`, why: 'no longer generated' });
  }
  return stale.sort((a, b) => a.path.localeCompare(b.path, 'en'));
}

/** Writes or removes the given files, no others. */
export async function refresh(root: string, tree: Tree, stale: readonly Stale[]): Promise<void> {
  for (const file of stale) {
    const target = path.join(root, file.path);
    const content = tree.get(file.path);
    if (content === undefined) await rm(target);
    else {
      await mkdir(path.dirname(target), { recursive: true });
      await writeFile(target, content);
    }
  }
}

const undefinedWhenAbsent = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT') throw error;
  return undefined;
};
