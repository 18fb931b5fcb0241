/** The order in which vitest begins test files. */
import path from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Seconds do not matter here, only which is longer. A file that never ran counts as a long one: it may be. */
export function byDuration<T>(files: readonly T[], durationOf: (file: T) => number | undefined): T[] {
  const of = (file: T): number => durationOf(file) ?? Number.POSITIVE_INFINITY;
  return files.toSorted((a, b) => (of(a) === of(b) ? 0 : of(b) - of(a)));
}

/** The longest first, of all projects of a run together: vitest's own order takes one project after the other. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { cache, config } = this.ctx;
    return byDuration(files, ({ project, moduleId }) => {
      const key = `${project.name}:${path.relative(config.root, moduleId)}`;
      return cache.getFileTestResults(key)?.duration;
    });
  }
}
