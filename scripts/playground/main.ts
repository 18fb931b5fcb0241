/** `npm run playground`: three clusters that have joined a broker, for the examples. */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { setUpMachine } from '#scripts/setup/setup.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { openPlayground } from './playground.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const usage = `usage: npm run playground              three clusters, rome, milan and naples, for the pages under examples/
       npm run playground -- --down    remove them`;
const log = (line: string) => console.log(line);

const { values } = parseArgs({
  options: { down: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } },
});

if (values.help) {
  console.log(usage);
} else if (values.down) {
  await removeProductClusters({ root, log });
  console.log('the playground is gone');
} else {
  await setUpMachine({ log });
  const { envFile } = await openPlayground({ root, log });
  console.log(
    `\nThe playground is ready. Paste this, then go on with examples/quick-start/README.md:\n\n  . ${path.relative(process.cwd(), envFile)}\n`,
  );
}
process.exit(0);
