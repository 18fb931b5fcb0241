/** The way between two clusters of a bed: cut in silence, as by a router that died, and given back. Each still reaches everybody else. */
import type { ProductClusters } from '#test/harness/product-clusters.ts';
import { must } from '#test/harness/program.ts';
import { internetName } from '#test/testbed/internet.ts';
import { slotOf } from '#test/testbed/slots.ts';

const table = 'ip cut';

async function inTheInternet({ bed }: ProductClusters, text: string): Promise<void> {
  const slot = slotOf(bed.dir);
  if (slot === undefined) throw new Error(`the bed in ${bed.dir} is not up`);
  await must('ip', ['netns', 'exec', internetName(slot), 'nft', '-f', '-'], { input: `${text}\n` });
}

/** A black hole in both directions: packets are dropped without RST or ICMP. */
export async function cutOff(clusters: ProductClusters, [one, other]: readonly [string, string]): Promise<void> {
  const [a, b] = [one, other].map((name) =>
    clusters
      .cluster(name)
      .nodes.map(({ ip }) => ip)
      .join(', '),
  );
  const rules = [`ip saddr { ${a} } ip daddr { ${b} } drop`, `ip saddr { ${b} } ip daddr { ${a} } drop`].join('; ');
  await inTheInternet(
    clusters,
    `table ${table} { chain cut { type filter hook forward priority filter; ${rules}; }; }`,
  );
}

/** Also when nothing is cut. New packets arrive; retransmissions follow in their own time. */
export const giveBack = (clusters: ProductClusters): Promise<void> =>
  inTheInternet(clusters, `table ${table} {}\ndelete table ${table}`);
