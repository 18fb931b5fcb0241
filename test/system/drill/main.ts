/** npm run doctor-drill: faults on two real clusters, one after another, and what `isthmus doctor` says first of each. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type Answered, drill, healthy } from './drill.ts';
import { faults } from './faults.ts';
import { openDrill } from './ground.ts';
import { drillTable, withTable } from './table.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    keep: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    /** Writes the table into docs/doctor.md. */
    write: { type: 'boolean', default: false },
  },
});
const say = (line: string): boolean => process.stderr.write(`${line}\n`);
const chosen = faults.filter(({ what }) => values.only.length === 0 || values.only.some((word) => what.includes(word)));
/** Of 100 first answers, so many have to be right. */
const wanted = 95;

if (values.list) {
  for (const { what, says } of faults) process.stdout.write(`${what} (${says})\n`);
} else {
  const dir = process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', 'drill');
  const place = { root: repositoryRoot, dir, log: say };
  if (!values.keep) await removeProductClusters(place);
  try {
    const ground = await openDrill(dir, say);
    await healthy(ground);
    const answered: Answered[] = [];
    for (const [at, fault] of chosen.entries()) {
      say(`${at + 1} of ${chosen.length}: ${fault.what}`);
      const one = await drill(ground, fault);
      answered.push(one);
      say(
        `  ${one.right ? 'right' : 'WRONG'} after ${(one.afterMs / 1_000).toFixed(0)} s: ${one.first?.code ?? 'nothing'}: ${one.first?.text ?? ''}`,
      );
      if (!one.right) for (const line of one.first?.evidence ?? []) say(`    ${line}`);
    }
    process.stdout.write(drillTable(answered));
    if (values.write) {
      const page = path.join(repositoryRoot, 'docs', 'doctor.md');
      writeFileSync(page, withTable(readFileSync(page, 'utf8'), answered));
    }
    const right = answered.filter((one) => one.right).length;
    process.stdout.write(`${right} of ${answered.length} first answers name the cause\n`);
    if (right * 100 < wanted * answered.length) process.exitCode = 1;
  } finally {
    if (!values.keep) await removeProductClusters(place);
  }
}
