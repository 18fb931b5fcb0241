import { expect, test } from 'vitest';
import { claimantsIn } from './claimants.ts';

const time = '2026-11-23T12:00:00Z';
const managed = (manager: string, subresource?: string) => ({ manager, operation: 'Update', time, subresource });

test('a kubelet is told from our agent, from the controllers of the cluster and from a person who edits the Node', () => {
  const items = [
    {
      metadata: {
        name: 'milan',
        managedFields: [
          managed('isthmus', 'status'),
          managed('kube-controller-manager', 'status'),
          managed('kubectl-taint'),
          managed('kubelet'),
          managed('kubelet', 'status'),
        ],
      },
    },
    { metadata: { name: 'paris' } },
  ];
  expect(claimantsIn(JSON.stringify({ items }))).toEqual([{ node: 'milan', manager: 'kubelet', at: Date.parse(time) }]);
});
