/** The order in which vitest begins test files. */
import path from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Seconds do not matter here, only which is longer. A file that never ran counts as a long one: it may be. */
export function byDuration<T>(files: readonly T[], durationOf: (file: T) => number | undefined): T[] {
  const of = (file: T): number => durationOf(file) ?? Number.POSITIVE_INFINITY;
  return files.toSorted((a, b) => (of(a) === of(b) ? 0 : of(b) - of(a)));
}

/**
 * Whole clusters boot one after the other, so files that have some would all wait for the first boot if they began together: each is followed by one
 * that has none, as long as there are such.
 */
export function interleaved<T>(files: readonly T[], hasClusters: (file: T) => boolean): T[] {
  const [clusters, others] = [files.filter(hasClusters), files.filter((file) => !hasClusters(file))];
  return [...clusters.flatMap((file, at) => [file, ...others.slice(at, at + 1)]), ...others.slice(clusters.length)];
}

/**
 * The longest first, of all projects of a run together: vitest's own order takes one project after the other, so that the last files of the
 * first leave workers idle until whole clusters begin.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { cache, config } = this.ctx;
    const ordered = byDuration(files, ({ project, moduleId }) => {
      const key = `${project.name}:${path.relative(config.root, moduleId)}`;
      return cache.getFileTestResults(key)?.duration;
    });
    return interleaved(ordered, ({ project }) => project.name === 'system');
  }
}
