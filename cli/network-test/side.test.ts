import { expect, test } from 'vitest';
import type { KubeClient } from '#cli/cluster/open.ts';
import { readSide } from './side.ts';

const manager = (name: string, image: string) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { namespace: 'liqo', name },
  spec: { template: { spec: { containers: [{ name: 'controller-manager', image }] } } },
});
/** A cluster with these Deployments and nothing else. */
const cluster = (...deployments: readonly ReturnType<typeof manager>[]): KubeClient =>
  ({
    get: async ({ plural }: { plural: string }, { name }: { name: string }) =>
      plural === 'deployments' ? deployments.find(({ metadata }) => metadata.name === name) : undefined,
    list: async () => [],
  }) as unknown as KubeClient;

const liqo = manager('liqo-controller-manager', 'ghcr.example/liqotech/liqo-controller-manager:v1.2.0');
const pinned = manager('liqo-controller-manager', 'registry.example:5000/liqo/controller-manager:v1.2.0@sha256:0123');
const untagged = manager('liqo-controller-manager', 'registry.example:5000/liqo/controller-manager');
const agent = manager('isthmus-agent', 'isthmus.dev/agent:1.2.0');

test.each([
  { what: 'with the manager of Liqo', of: [liqo], runs: 'v1.2.0' },
  { what: 'whose image is pinned', of: [pinned], runs: 'v1.2.0' },
  { what: 'whose image has no tag', of: [untagged], runs: 'of an unknown version' },
  { what: 'with an agent of Isthmus', of: [agent], runs: undefined },
  { what: 'with an agent of Isthmus beside what Liqo left', of: [agent, liqo], runs: undefined },
  { what: 'with nothing', of: [], runs: undefined },
])('a cluster $what is known as one that runs Liqo: $runs', async ({ of, runs }) => {
  expect((await readSide(cluster(...of), 'milan', 'rome')).liqo).toBe(runs);
});
