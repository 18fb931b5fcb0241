import { expect, test } from 'vitest';
import type { Secret } from '#shared/domain/kube-object.ts';
import { withinBounds } from './peering-selections.ts';

const secret = (bytes: number): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'apps-mad', name: 's', labels: { 'liqo.io/remote-cluster-id': 'other' } },
  data: { kubeconfig: 'x'.repeat(bytes / 2), more: 'y'.repeat(bytes / 2) },
});

test.each([
  { what: 'a kubeconfig with a chain of certificates', bytes: 40_000, isKept: true },
  { what: 'what a consumer fills a Secret with', bytes: 1_000_000, isKept: false },
])('of Secrets about peers, the contents of $what are kept in memory: $isKept', ({ bytes, isKept }) => {
  const given = secret(bytes);
  const kept = withinBounds(given);
  expect(kept.metadata).toEqual(given.metadata);
  expect(kept.data).toEqual(isKept ? given.data : undefined);
  expect(withinBounds(kept)).toEqual(kept);
});
