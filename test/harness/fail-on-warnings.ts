/** Set-up of every test file: a warning of the runtime that is a defect fails the test during which it came. */
import { afterAll, afterEach, beforeAll } from 'vitest';
import { isDefect } from './runtime-warnings.ts';

/** The real one: a test may have put its own in its place. */
const { setImmediate } = globalThis;
const heard: string[] = [];
const listen = (warning: Error): void => {
  if (isDefect(warning)) heard.push(warning.stack ?? warning.message);
};

/** Warnings come a turn after what they are about. */
async function fail(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  const found = heard.splice(0);
  if (found.length > 0) throw new Error(`the runtime warns of a leak:\n${found.join('\n')}`);
}

// Files share a process: each listens for itself.
beforeAll(() => {
  process.on('warning', listen);
});
afterEach(fail);
afterAll(async () => {
  await fail().finally(() => process.off('warning', listen));
});
