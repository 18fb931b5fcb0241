/** The clusters of the examples: rome borrows, milan and naples lend, all at one broker, with the labels that the examples choose by. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  openProductClusters,
  type ProductClusters,
  type ProductClustersOptions,
} from '#test/harness/product-clusters.ts';

const playgroundClusters = [
  { name: 'rome', labels: 'topology.liqo.io/region=north,topology.liqo.io/type=origin' },
  { name: 'milan', labels: 'topology.liqo.io/region=center,topology.liqo.io/type=destination' },
  { name: 'naples', labels: 'topology.liqo.io/region=south,topology.liqo.io/type=destination' },
] as const;

export interface Playground {
  readonly world: ProductClusters;
  /** For a shell to source: kubeconfigs, the login, and the commands of the examples on the path. */
  readonly envFile: string;
}

export async function openPlayground(options: Omit<ProductClustersOptions, 'clusters'>): Promise<Playground> {
  const clusters = await openProductClusters({ ...options, clusters: playgroundClusters.map(({ name }) => name) });
  await Promise.all(playgroundClusters.map(({ name, labels }) => clusters.join(name, '--labels', labels)));
  return { world: clusters, envFile: writeEnvironment(options.root, clusters) };
}

function writeEnvironment(root: string, { bed, cluster, stateDir }: ProductClusters): string {
  const bin = path.join(stateDir, 'bin');
  mkdirSync(bin, { recursive: true });
  const program = path.join(bin, 'isthmus');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${path.join(root, 'bin', 'isthmus.mjs')}' "$@"\n`);
  chmodSync(program, 0o755);
  const kubeconfig = (name: string) => `'${cluster(name).kubeconfigPath}'`;
  const lines = [
    `export KUBECONFIG=${kubeconfig('rome')}`,
    `export KUBECONFIG_MILAN=${kubeconfig('milan')}`,
    `export KUBECONFIG_NAPLES=${kubeconfig('naples')}`,
    `export ISTHMUS_CONFIG='${path.join(stateDir, 'config.json')}'`,
    `export PATH='${bin}:${bed.dir}':"$PATH"`,
  ];
  const file = path.join(stateDir, 'env');
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}
