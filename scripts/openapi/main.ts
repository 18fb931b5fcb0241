/** `npm run api-changes`: what changed in the API since its last release, and whether its version says so. `-- --release` makes the present document the released one. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { findings, versionFault } from './compatibility.ts';
import { readDocument, releasedPath, releasedText, servedPath } from './released.ts';

const { values } = parseArgs({ options: { release: { type: 'boolean', default: false } } });
const [released, served] = [readDocument(releasedPath), readDocument(servedPath)];
for (const { kind, where, what } of findings(released, served)) console.log(`${kind}: ${where}: ${what}`);
const fault = versionFault(released, served);
if (fault !== undefined) {
  console.error(fault);
  process.exit(1);
}
if (values.release) writeFileSync(releasedPath, releasedText(served));
console.log(
  `${servedPath} is ${served.info.version}, the last release ${values.release ? served.info.version : released.info.version}`,
);
