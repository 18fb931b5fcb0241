/** What a single executable carries in place of the folders beside the packed command. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { getAsset, isSea } from 'node:sea';

/** Writes the files of the console into a folder of this process, which goes with it. Undefined: this is no single executable. */
export function unpackedConsole(): string | undefined {
  if (!isSea()) return undefined;
  const files = JSON.parse(getAsset('console.json', 'utf8')) as Readonly<Record<string, string>>;
  const folder = mkdtempSync(path.join(tmpdir(), 'isthmus-console-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), Buffer.from(content, 'base64'));
  }
  return folder;
}
