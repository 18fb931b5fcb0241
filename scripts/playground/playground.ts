/** The clusters of the examples: rome borrows, milan and naples lend, all at one broker, with the labels that the examples choose by. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import {
  openProductClusters,
  type ProductClusters,
  type ProductClustersOptions,
} from '#test/harness/product-clusters.ts';
import { buildDatabaseImages } from '#test/testbed/debian-images.ts';
import { internetName } from '#test/testbed/internet.ts';
import { slotOf } from '#test/testbed/slots.ts';

const playgroundClusters = [
  { name: 'rome', labels: 'topology.liqo.io/region=north,topology.liqo.io/type=origin' },
  { name: 'milan', labels: 'topology.liqo.io/region=center,topology.liqo.io/type=destination' },
  { name: 'naples', labels: 'topology.liqo.io/region=south,topology.liqo.io/type=destination' },
] as const;

/** Equal ones, as clusters have that were never meant to meet. */
const ranges = { podCidr: '10.50.0.0/16', serviceCidr: '10.150.0.0/16' } as const;

export interface Playground {
  readonly world: ProductClusters;
  /** For a shell to source: kubeconfigs, the login, and the commands of the examples on the path. */
  readonly envFile: string;
}

export async function openPlayground(options: Omit<ProductClustersOptions, 'clusters'>): Promise<Playground> {
  const log = options.log ?? (() => undefined);
  const images = await buildDatabaseImages(cacheDir(), log);
  const requests = playgroundClusters.map(({ name }) => ({ name, storage: true, ...ranges }));
  const clusters = await openProductClusters({ ...options, clusters: requests });
  await Promise.all(
    playgroundClusters.map(async ({ name, labels }) => {
      for (const image of images) await clusters.cluster(name).importImage(image);
      await clusters.join(name, '--labels', labels);
    }),
  );
  return { world: clusters, envFile: writeEnvironment(options.root, clusters) };
}

/** What goes to a cluster's nodes or comes from them is dropped, as by a router that died, but for what this host says to them. */
const cutting = (internet: string, host: string, addresses: readonly string[]): string => `case "\${1-}" in
${addresses.join('\n')}
*) echo 'usage: playground-cut CLUSTER' >&2; exit 2 ;;
esac
exec ip netns exec ${internet} nft -f - <<RULES
table ip playground {}
delete table ip playground
table ip playground {
  chain cut {
    type filter hook forward priority filter
    ip saddr != ${host} ip daddr { $nodes } drop
    ip saddr { $nodes } ip daddr != ${host} drop
  }
}
RULES
`;
const healing = (internet: string): string => `exec ip netns exec ${internet} nft -f - <<RULES
table ip playground {}
delete table ip playground
RULES
`;

function writeEnvironment(root: string, { bed, cluster, stateDir }: ProductClusters): string {
  const bin = path.join(stateDir, 'bin');
  mkdirSync(bin, { recursive: true });
  const internet = internetName(slotOf(bed.dir) ?? 0);
  const addresses = bed.clusters.map(
    ({ name, nodes }) => `${name}) nodes='${nodes.map(({ ip }) => ip).join(', ')}' ;;`,
  );
  const programs = {
    isthmus: `exec '${process.execPath}' '${path.join(root, 'bin', 'isthmus.mjs')}' "$@"\n`,
    'playground-cut': cutting(internet, bed.hostAddress, addresses),
    'playground-heal': healing(internet),
  };
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(path.join(bin, name), `#!/bin/sh\n${text}`);
    chmodSync(path.join(bin, name), 0o755);
  }
  const kubeconfig = (name: string) => `'${cluster(name).kubeconfigPath}'`;
  const lines = [
    `export KUBECONFIG=${kubeconfig('rome')}`,
    `export KUBECONFIG_MILAN=${kubeconfig('milan')}`,
    `export KUBECONFIG_NAPLES=${kubeconfig('naples')}`,
    `export ISTHMUS_CONFIG='${path.join(stateDir, 'config.json')}'`,
    // `playground-cut` and `playground-heal` are there, too.
    `export PATH='${bin}:${bed.dir}':"$PATH"`,
  ];
  const file = path.join(stateDir, 'env');
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}
