/** The provider is cut off for a moment that Kubernetes forgives; `npm run cuts` has the longer ones. */
import { afterAll, describe, expect, test } from 'vitest';
import { runCut, wordsOf } from '../../cuts/cut.ts';
import { consumer, reported, type Stage } from '../stage.ts';

const seconds = 30;
const namespace = 'severed';

export function cutOffProvider(on: () => Stage): void {
  describe(`a provider that is cut off for ${seconds} s`, () => {
    afterAll(async () => {
      const { world: clusters, deleteNamespaces } = on();
      const target = ['--kubeconfig', clusters.cluster(consumer).kubeconfigPath];
      const ended = await clusters.isthmus('unoffload', 'namespace', namespace, ...target);
      expect(ended.code, reported(ended)).toBe(0);
      await deleteNamespaces(consumer, namespace);
    });

    test('B113 loses no pod and runs none twice, and 1,000 objects that changed meanwhile are equal soon after', async () => {
      const report = await runCut(on(), { seconds, namespace });
      console.log(wordsOf(seconds, report));
      expect(report.problems.join('\n')).toBe('');
      expect(report.firstEvictionAt).toBeUndefined();
    });
  });
}
