/** Tests that build on each other say so: one that is run without what it builds on fails with a sentence, not with a riddle. */
import { beforeEach, type RunnerTask, type RunnerTestCase, type RunnerTestSuite } from 'vitest';

const testsIn = (tasks: readonly RunnerTask[]): readonly RunnerTestCase[] =>
  tasks.flatMap((task) => (task.type === 'suite' ? testsIn(task.tasks) : [task as RunnerTestCase]));

/** Why this test cannot tell anything: one of those before it in the same scenario was left out. */
export function missingBefore(task: RunnerTestCase, scenario: Pick<RunnerTestSuite, 'tasks'>): string | undefined {
  const all = testsIn(scenario.tasks);
  const leftOut = all.slice(0, all.indexOf(task)).find(({ mode }) => mode === 'skip');
  return leftOut && `this test continues "${leftOut.name}", which was left out: run the whole file, without -t`;
}

/**
 * Call once in a file or a `describe`: its tests continue each other from the first to the last. `file`: across every `describe` of the file;
 * `describe`: within the innermost one.
 */
export function inOrder(scenario: 'file' | 'describe'): void {
  beforeEach(({ task }) => {
    const missing = missingBefore(task, scenario === 'file' ? task.file : (task.suite ?? task.file));
    if (missing !== undefined) throw new Error(missing);
  });
}

/** What several tests need and the first of them makes. A failure is not repeated: it is the failure of each. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
