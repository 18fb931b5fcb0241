/** `npm run test:flaky -- FILE... [--runs N] [--busy K]`: runs suspects again and again beside busy processors, and counts. */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { foreground } from '#scripts/test/programs.ts';
import { runVitest } from '#scripts/test/vitest.ts';
import { startBusyLoops } from './busy.ts';
import { parseSuspects, projectsOf, summaryOf, type Trial } from './trials.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const { files, runs, busy } = parseSuspects(process.argv.slice(2), root);
const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-flaky-'));
const stopLoops = startBusyLoops(busy);
const trials: Trial[] = [];
try {
  for (let number = 1; number <= runs; number++) {
    const at = Date.now();
    const projects = [...new Set(files.flatMap(projectsOf))].flatMap((project) => ['--project', project]);
    const place = { root, scratch, node: process.execPath };
    const { passed, failures } = await runVitest(place, foreground({ cwd: root }), 'suspects', [...projects, ...files]);
    // A name that vitest does not know would pass every time.
    const ran = [...passed.values()].reduce((sum, count) => sum + count, 0) + failures.length;
    if (ran === 0) throw new Error(`no test ran in ${files.join(', ')}`);
    trials.push({ seconds: (Date.now() - at) / 1000, failures });
    console.log(`-- run ${number} of ${runs}: ${failures.length === 0 ? 'passed' : `${failures.length} failed`}`);
  }
} finally {
  stopLoops();
  rmSync(scratch, { recursive: true, force: true });
}
for (const line of summaryOf(trials, { files, busy })) console.log(line);
process.exitCode = trials.some(({ failures }) => failures.length > 0) ? 1 : 0;
