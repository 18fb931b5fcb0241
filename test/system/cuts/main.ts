/** npm run cuts: the provider of a peering of two real clusters is cut off for some time, with Kubernetes' own delays, and comes back. */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { clusterNames, createStage } from '../whole-clusters/stage.ts';
import { runCut, wordsOf } from './cut.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    /** Seconds until all is equal: 10 on a machine that has nothing else to do. */
    within: { type: 'string', default: '10' },
    keep: { type: 'boolean', default: false },
  },
});
function whole(name: 'seconds' | 'within', least: number, most: number): number {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new Error(`--${name} is ${JSON.stringify(values[name])}: a whole number from ${least} to ${most} is accepted`);
}
const seconds = whole('seconds', 10, 7_200);
const mostSeconds = whole('within', 1, 600);
const say = (line: string): boolean => process.stderr.write(`${new Date().toISOString()} ${line}\n`);

const dir = process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', `cuts-${seconds}`);
const place = { root: repositoryRoot, dir, log: say };
if (!values.keep) await removeProductClusters(place);
try {
  const clusters = await openProductClusters({ ...place, clusters: clusterNames, brokerPort: 7743 });
  await Promise.all(clusterNames.map((name) => clusters.join(name)));
  const stage = await createStage(clusters);
  await stage.mustPeer();
  say('ready: the two clusters are peered');
  const report = await runCut(stage, { seconds, namespace: 'severed', say });
  process.stdout.write(`${wordsOf(seconds, report)}\n`);
  const late =
    report.equalAfter.all > mostSeconds ? [`equal after ${report.equalAfter.all} s, want ${mostSeconds} s`] : [];
  for (const problem of [...report.problems, ...late]) process.stderr.write(`${problem}\n`);
  if (report.problems.length + late.length > 0) process.exitCode = 1;
} finally {
  if (!values.keep) await removeProductClusters(place);
}
