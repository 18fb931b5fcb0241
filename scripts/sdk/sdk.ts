/** Clients in other languages: one folder each, from one document. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Document } from './document.ts';

export interface SdkPlaces {
  /** The document of `sdkDocument`, as a file. */
  readonly documentFile: string;
  /** The folder of this client; empty before. */
  readonly out: string;
  /** Of the repository. */
  readonly root: string;
  readonly cache: string;
  readonly log: (line: string) => void;
}

export interface Sdk {
  readonly name: 'typescript' | 'python' | 'go';
  write(document: Document, places: SdkPlaces): Promise<void>;
}

/** Writes `out/openapi.json` and a folder for each client; the folders. */
export async function writeSdks(
  sdks: readonly Sdk[],
  document: Document,
  { out, ...places }: Omit<SdkPlaces, 'documentFile'>,
): Promise<readonly string[]> {
  await mkdir(out, { recursive: true });
  const documentFile = path.join(out, 'openapi.json');
  await writeFile(documentFile, `${JSON.stringify(document, null, 2)}\n`);
  const folders: string[] = [];
  for (const sdk of sdks) {
    const folder = path.join(out, sdk.name);
    await rm(folder, { recursive: true, force: true });
    await sdk.write(document, { ...places, documentFile, out: folder });
    folders.push(folder);
  }
  return folders;
}
