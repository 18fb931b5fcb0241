/** npm run conformance: Kubernetes' own suite on a cluster whose pods are all on a virtual node. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { AppError } from '#shared/errors/app-error.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { consumer } from '../whole-clusters/stage.ts';
import { openGround } from './ground.ts';
import { offloadSuiteNamespaces } from './offloads.ts';
import { reasons } from './reasons.ts';
import { inPieces, type Outcome, reasonFor, staleReasons } from './report.ts';
import { type Group, groups, openSuite } from './suite.ts';
import { openSpecs, rowOf, unexplained, withRows } from './table.ts';
import { keepUntainted } from './untainted.ts';

const { values } = parseArgs({
  options: {
    group: { type: 'string', multiple: true, default: ['node'] },
    only: { type: 'string', multiple: true, default: [] },
    keep: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    /** Specs without an outcome in docs/conformance.md only, and the page gets theirs. */
    resume: { type: 'boolean', default: false },
    /** No further piece begins after so many minutes. */
    minutes: { type: 'string' },
    /** Writes the table into docs/conformance.md; with `list`, the reasons of the rows that it has. */
    write: { type: 'boolean', default: false },
  },
});
const say = (line: string): boolean => process.stderr.write(`${line}\n`);
const specsAtATime = 4;
const specsInAPiece = 24;
/** Where there is a limit of time. */
const specsInAShortPiece = 8;
/** Of a piece. Most specs take less than half a minute; those that wait for something to stay away take five. */
const pieceSeconds = 540;

const minutes = values.minutes === undefined ? Number.POSITIVE_INFINITY : Number(values.minutes);
if (!(minutes > 0)) throw new AppError('invalid_input', `--minutes is ${values.minutes}: a number above 0 is accepted`);
const noPieceAfter = Date.now() + minutes * 60_000;
const writes = values.write || values.resume;
const page = path.join(repositoryRoot, 'docs', 'conformance.md');

const isGroup = (name: string): name is Group => name in groups;
const unknown = values.group.find((name) => !isGroup(name));
if (unknown !== undefined)
  throw new AppError('invalid_input', `--group is ${unknown}: ${Object.keys(groups).join(', ')} are accepted`);

const dir = process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', 'conformance');
const place = { root: repositoryRoot, dir, log: say };
const listing = await openSuite(path.join(dir, 'suite'), undefined, say);
const ofGroups = new Map<string, readonly string[]>();
for (const group of Object.keys(groups).filter(isGroup)) ofGroups.set(group, await listing.specsOf(group));
const all = [...ofGroups.values()].flat();
const wanted = values.group
  .flatMap((group) => ofGroups.get(group) ?? [])
  .filter((spec) => values.only.length === 0 || values.only.some((word) => spec.includes(word)));
const chosen = values.resume ? openSpecs(readFileSync(page, 'utf8'), wanted) : wanted;

if (values.list) {
  for (const spec of chosen) process.stdout.write(`${spec}\n`);
  record([]);
} else {
  if (!values.keep) await removeProductClusters(place);
  try {
    process.exitCode = (await runChosen()) ? 0 : 1;
  } finally {
    if (!values.keep) await removeProductClusters(place);
  }
}

/** Whether everything that failed has a reason, and every reason is true. */
async function runChosen(): Promise<boolean> {
  const { stage, kubeconfigPath, kubectlPath } = await openGround(dir, say);
  const suite = await openSuite(path.join(dir, 'suite'), { kubeconfigPath, kubectlPath }, say);
  const stopOffloading = offloadSuiteNamespaces(stage.api(consumer), say);
  const stopWebhook = await keepUntainted(stage.api(consumer), stage.world.bed.hostAddress);
  const outcomes: Outcome[] = chosen
    .filter((spec) => reasonFor(reasons, spec)?.state === 'not applicable')
    .map((spec) => ({ spec, state: 'not applicable', seconds: 0, message: '' }));
  const toRun = chosen.filter((spec) => reasonFor(reasons, spec)?.state !== 'not applicable');
  try {
    const pieces = inPieces(toRun, minutes === Number.POSITIVE_INFINITY ? specsInAPiece : specsInAShortPiece);
    for (const [at, piece] of pieces.entries()) {
      if (Date.now() > noPieceAfter) {
        say(`${pieces.length - at} of ${pieces.length} parts are left: --resume goes on with them`);
        return judge(outcomes, pieces.slice(0, at).flat());
      }
      say(`part ${at + 1} of ${pieces.length}: ${piece.length} specs`);
      const ended = await suite.run(piece, { processes: specsAtATime, seconds: pieceSeconds });
      for (const { spec, state, seconds, message } of ended)
        say(`  ${state} after ${seconds} s: ${spec}${message ? `\n    ${message.slice(0, 1_000)}` : ''}`);
      outcomes.push(...ended);
      record(ended);
    }
  } finally {
    await stopOffloading();
    await stopWebhook();
  }
  return judge(outcomes, toRun);
}

function record(ended: readonly Outcome[]): void {
  if (!writes) return;
  const rows = ended.map((outcome) => rowOf(outcome, reasons));
  writeFileSync(page, withRows(readFileSync(page, 'utf8'), rows, all, reasons));
}

/** `given`: what was given to the suite. */
function judge(outcomes: readonly Outcome[], given: readonly string[]): boolean {
  record(outcomes);
  const rows = outcomes.map((outcome) => rowOf(outcome, reasons));
  for (const state of ['not applicable', 'failed'] as const)
    for (const { spec, reason } of rows.filter((row) => row.state === state))
      process.stdout.write(`${state}: ${spec}\n  ${reason}\n`);
  const count = (state: Outcome['state']): number => rows.filter((row) => row.state === state).length;
  process.stdout.write(
    `${count('passed')} passed, ${count('failed')} failed, ${count('not applicable')} not applicable\n`,
  );
  const ran = new Set(outcomes.map(({ spec }) => spec));
  const lost = given.filter((spec) => !ran.has(spec)).map((spec) => `the suite says nothing of ${spec}`);
  const stale = staleReasons(reasons, all, outcomes);
  for (const problem of [...lost, ...stale]) process.stderr.write(`${problem}\n`);
  return lost.length + stale.length === 0 && rows.every(({ reason }) => reason !== unexplained);
}
