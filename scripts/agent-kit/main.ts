/** `npm run agent-kit -- --command "node my-agent.mjs"`: runs an agent of another author through docs/agent-protocol.md and prints what holds. */
import { parseArgs } from 'node:util';
import { runKit } from './kit.ts';

const { values } = parseArgs({ options: { command: { type: 'string' } } });
if (values.command === undefined) {
  console.error('usage: npm run agent-kit -- --command "COMMAND THAT STARTS THE AGENT"');
  process.exit(2);
}
let passed = 0;
for await (const { check, failed } of runKit(values.command)) {
  console.log(`${failed === undefined ? 'ok  ' : 'FAIL'}  ${check}`);
  if (failed === undefined) passed += 1;
  else {
    console.log(failed.replaceAll(/^/gm, '      '));
    process.exitCode = 1;
  }
}
console.log(process.exitCode === 1 ? `${passed} passed, then one failed` : `all ${passed} passed`);
