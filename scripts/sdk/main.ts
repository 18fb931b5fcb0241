/** `npm run sdk -- [--out FOLDER] [--only typescript|python|go]`: clients of the REST API, of the version that the OpenAPI document has. */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { openApiDocument } from '#functions/openapi.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { allSdks } from './all.ts';
import { type Document, sdkDocument } from './document.ts';
import { writeSdks } from './sdk.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const { values } = parseArgs({ options: { out: { type: 'string' }, only: { type: 'string' } } });
const wanted = allSdks.filter(({ name }) => values.only === undefined || values.only === name);
if (wanted.length === 0) {
  console.error(`--only is ${values.only}; accepted are ${allSdks.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
const document = sdkDocument(openApiDocument() as unknown as Document);
const out = path.resolve(values.out ?? path.join(root, 'dist', 'sdk'));
const log = (line: string): void => console.error(line);
for (const folder of await writeSdks(wanted, document, { out, root, cache: cacheDir(), log })) console.log(folder);
