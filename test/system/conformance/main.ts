/** npm run conformance: Kubernetes' own suite on a cluster whose pods are all on a virtual node, or its suites for storage drivers on class `liqo`. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Outcome } from '#test/harness/ginkgo-report.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { readOptions } from './options.ts';
import { inPieces, reasonFor, shortcomings } from './report.ts';
import { driverOf, subjectOf } from './subject.ts';
import { openSuite } from './suite.ts';
import { openSpecs, rowOf, unexplained, withRows } from './table.ts';

const options = readOptions(process.argv.slice(2));
const say = (line: string): boolean => process.stderr.write(`${line}\n`);
const specsAtATime = 4;
const specsInAPiece = 24;
/** Where there is a limit of time. */
const specsInAShortPiece = 8;
/** Of a piece. Most specs take less than half a minute; those that wait for something to stay away take five. */
const pieceSeconds = 540;

const noPieceAfter = Date.now() + options.minutes * 60_000;
const page = path.join(repositoryRoot, 'docs', 'conformance.md');

const subject = subjectOf(options);
const { table, reasons } = subject;
const dir = process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', subject.folder);
const place = { root: repositoryRoot, dir, log: say };
const driver = driverOf(options, path.join(dir, 'suite'));
const listing = await openSuite(path.join(dir, 'suite'), undefined, say, driver);
const bySelection: (readonly string[])[] = [];
for (const selection of subject.selections) bySelection.push(await listing.specsOf(selection));
const all = bySelection.flat();
const wanted = bySelection
  .filter((_specs, at) => subject.isWanted(at))
  .flat()
  .filter((spec) => options.only.length === 0 || options.only.some((word) => spec.includes(word)));
const chosen = options.resume ? openSpecs(table, readFileSync(page, 'utf8'), wanted) : wanted;

if (options.list) {
  for (const spec of chosen) process.stdout.write(`${spec}\n`);
  record([]);
} else {
  if (!options.keep) await removeProductClusters(place);
  try {
    process.exitCode = (await runChosen()) ? 0 : 1;
  } finally {
    if (!options.keep) await removeProductClusters(place);
  }
}

/** Whether every chosen spec was run, everything that failed has a reason, and every reason is true. */
async function runChosen(): Promise<boolean> {
  const ground = await subject.open(dir, say);
  const suite = await openSuite(path.join(dir, 'suite'), ground, say, driver);
  const outcomes: Outcome[] = chosen
    .filter((spec) => reasonFor(reasons, spec)?.state === 'not applicable')
    .map((spec) => ({ spec, state: 'not applicable', seconds: 0, message: '' }));
  const toRun = chosen.filter((spec) => reasonFor(reasons, spec)?.state !== 'not applicable');
  try {
    const pieces = inPieces(toRun, options.minutes === Number.POSITIVE_INFINITY ? specsInAPiece : specsInAShortPiece);
    for (const [at, piece] of pieces.entries()) {
      if (Date.now() > noPieceAfter) return judge(outcomes, pieces.slice(0, at).flat(), pieces.slice(at).flat());
      say(`part ${at + 1} of ${pieces.length}: ${piece.length} specs`);
      const ended = await suite.run(piece, { processes: specsAtATime, seconds: pieceSeconds });
      for (const { spec, state, seconds, message } of ended)
        say(`  ${state} after ${seconds} s: ${spec}${message ? `\n    ${message.slice(0, 1_000)}` : ''}`);
      outcomes.push(...ended);
      record(ended);
    }
  } finally {
    await ground.stop();
  }
  return judge(outcomes, toRun);
}

function record(ended: readonly Outcome[]): void {
  if (!options.writes) return;
  const rows = ended.map((outcome) => rowOf(outcome, reasons));
  writeFileSync(page, withRows(table, readFileSync(page, 'utf8'), rows, all, reasons));
}

/** `given`: what was given to the suite. `left`: what was not, for want of time. */
function judge(outcomes: readonly Outcome[], given: readonly string[], left: readonly string[] = []): boolean {
  record(outcomes);
  const rows = outcomes.map((outcome) => rowOf(outcome, reasons));
  const notApplicable = rows.filter(({ state }) => state === 'not applicable');
  for (const reason of new Set(notApplicable.map((row) => row.reason))) {
    const [first, ...more] = notApplicable.filter((row) => row.reason === reason);
    const others = more.length === 0 ? '' : ` and ${more.length} more`;
    process.stdout.write(`not applicable: ${first?.spec}${others}\n  ${reason}\n`);
  }
  for (const { spec, reason } of rows.filter(({ state }) => state === 'failed'))
    process.stdout.write(`failed: ${spec}\n  ${reason}\n`);
  const count = (state: Outcome['state']): number => rows.filter((row) => row.state === state).length;
  process.stdout.write(
    `${count('passed')} passed, ${count('failed')} failed, ${count('not applicable')} not applicable\n`,
  );
  const problems = shortcomings({ reasons, all, outcomes, given, left });
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  return problems.length === 0 && rows.every(({ reason }) => reason !== unexplained);
}
