/** Set-up of every test file: a warning of the runtime that is a defect fails the test during which it came. */
import { EventEmitter } from 'node:events';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { isDefect } from './runtime-warnings.ts';

/**
 * Node warns from the eleventh listener of one signal on. How many requests of one caller overlap depends on the machine's load, so ten would fail tests
 * by chance; a leak grows without bound and passes a hundred.
 */
EventEmitter.defaultMaxListeners = 100;

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
