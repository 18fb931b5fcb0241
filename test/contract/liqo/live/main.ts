/** `npm run record-liqo`: real Liqo beside Isthmus on two real clusters, and what they write into the files of this folder. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { textOf } from './file.ts';
import { recordExchanges } from './record.ts';
import { openLiqoWorld } from './world.ts';

const folder = path.join(repositoryRoot, 'test', 'contract', 'liqo');
const log = (line: string): void => console.error(line);
const world = await openLiqoWorld({ dir: path.join(repositoryRoot, '.build', 'record-liqo'), log });
try {
  for (const exchange of await recordExchanges(world, log)) {
    const other = exchange.isthmusIs === 'provider' ? 'consumer' : 'provider';
    const file = path.join(folder, `liqo-${exchange.liqo}-${other}.yaml`);
    await writeFile(file, textOf(exchange));
    console.log(`${exchange.steps.length} steps in ${path.relative(repositoryRoot, file)}`);
  }
} finally {
  await world.close();
}
