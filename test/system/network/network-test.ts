/** `isthmus network test` between two clusters of a test. */
import type { Report } from '#cli/network-test/run.ts';
import type { ProductClusters } from '#test/harness/product-clusters.ts';

/** Rows of a finished test, and its exit code; rejects with what it said when it did not come so far. */
export async function networkTest(
  world: ProductClusters,
  [from, to]: readonly [consumer: string, provider: string],
  ...more: readonly string[]
): Promise<Report & { readonly code: number | null }> {
  const kubeconfigOf = (name: string): string => world.cluster(name).kubeconfigPath;
  const target = ['--kubeconfig', kubeconfigOf(from), '--peer-kubeconfig', kubeconfigOf(to), '-o', 'json', ...more];
  const { code, stdout, stderr } = await world.isthmus('network', 'test', from, to, ...target);
  if (!stdout.includes('{')) throw new Error(stderr);
  return { code, ...(JSON.parse(stdout.slice(stdout.indexOf('{'))) as Report) };
}
