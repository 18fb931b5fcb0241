/** `npm run image [-- --out FILE]`: writes the agent's OCI image without a container engine. */
import { copyFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { setUpMachine } from '#scripts/setup/setup.ts';
import { buildAgentImage } from './agent-image.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const { values } = parseArgs({ options: { out: { type: 'string' } } });
await setUpMachine({ log: (line) => console.error(line) });
const image = await buildAgentImage(root, { log: (line) => console.error(line) });
if (values.out) copyFileSync(image.tarPath, values.out);
console.log(`reference   ${image.reference}`);
console.log(`digest      ${image.digest}`);
console.log(`compressed  ${(image.compressedBytes / 1e6).toFixed(1)} MB`);
console.log(`tar         ${values.out ?? image.tarPath}`);
