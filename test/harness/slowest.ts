/** How long the slowest of many generated inputs took. Printed where all cases run (`ISTHMUS_ALL_CASES=1`), never asserted: it depends on the machine. */
import { onTestFinished } from 'vitest';
import { countOf } from './cases.ts';

/** Processor time of this process for the slowest call, as milliseconds; the time of a garbage collection counts as well. */
export function slowest(what: string): <T>(call: () => T) => T {
  let inputs = 0;
  let worst = 0;
  const all = countOf(1, 0) === 1;
  if (all)
    onTestFinished(() => {
      process.stdout.write(`${what}: ${inputs} inputs, the slowest took ${worst.toFixed(1)} ms of processor time\n`);
    });
  return (call) => {
    if (!all) return call();
    inputs += 1;
    const before = process.cpuUsage();
    const note = (): void => {
      const { user, system } = process.cpuUsage(before);
      worst = Math.max(worst, (user + system) / 1_000);
    };
    let result: ReturnType<typeof call> | undefined;
    try {
      result = call();
    } finally {
      if (!(result instanceof Promise)) note();
    }
    return result instanceof Promise ? (result.finally(note) as typeof result) : (result as ReturnType<typeof call>);
  };
}
