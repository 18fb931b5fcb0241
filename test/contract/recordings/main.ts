/** `node scripts/run.mjs test/contract/recordings/main.ts FILE`: records a session of this tree. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { recordSession } from './session.ts';

const [file, commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()] =
  process.argv.slice(2);
if (file === undefined) {
  console.error('usage: node scripts/run.mjs test/contract/recordings/main.ts FILE [COMMIT]');
  process.exit(2);
}
const recording = await recordSession(commit, (line) => console.error(line));
writeFileSync(file, `${JSON.stringify(recording, undefined, 1)}\n`);
console.log(`${recording.entries.length} entries of protocol version ${recording.protocol} in ${file}`);
process.exit(0);
