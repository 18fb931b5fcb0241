/** Two real clusters: `rome` with Liqo's own programs from Liqo's own chart, `milan` with Isthmus. Both without a network. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import {
  moreThanThereIs,
  openProductClusters,
  type ProductClusters,
  removeProductClusters,
} from '#test/harness/product-clusters.ts';
import { must } from '#test/harness/program.ts';
import { buildHelm, buildLiqo, type LiqoProgram, liqoChart, liqoPrograms, liqoVersion } from '#test/testbed/build.ts';
import { emptyFolders, imageTarOf } from '#test/testbed/images.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import type { BedCluster } from '#test/testbed/testbed.ts';
import { policyWithBodies } from './audit.ts';
import { isthmusCluster, liqoCluster } from './names.ts';

export interface LiqoWorld {
  readonly clusters: ProductClusters;
  /** Path of the unmodified program. */
  readonly liqoctl: string;
  close(): Promise<void>;
}

/** Where Liqo's chart looks for its images. */
const imageNames: Partial<Record<LiqoProgram, string>> = {
  'liqo-controller-manager': 'ghcr.io/liqotech/liqo-controller-manager',
  'crd-replicator': 'ghcr.io/liqotech/crd-replicator',
  webhook: 'ghcr.io/liqotech/webhook',
  'virtual-kubelet': 'ghcr.io/liqotech/virtual-kubelet',
};

/**
 * How long certificates live that a cluster signs, in seconds: Liqo has a peer's renewed after 160 s, Isthmus after 200 s, which is late enough
 * for a pod to come and go before. Liqo counts a third of the life back from its end, and in the life are the five minutes for which
 * Kubernetes has a certificate valid before it is issued.
 */
const signedForSeconds = { [liqoCluster]: 390, [isthmusCluster]: 300 } as const;

interface Place {
  readonly dir: string;
  readonly log: (line: string) => void;
}

export async function openLiqoWorld({ dir, log }: Place): Promise<LiqoWorld> {
  const place = { root: repositoryRoot, dir, log };
  const programs = new Map<LiqoProgram, string>();
  for (const name of liqoPrograms) programs.set(name, await buildLiqo(name, { log }));
  const helm = await buildHelm({ log });
  await removeProductClusters(place);
  const clusters = await openProductClusters({
    ...place,
    // With StorageClasses, which Liqo offers a consumer.
    clusters: [{ name: liqoCluster, storage: true }, isthmusCluster],
    brokerPort: 7689,
  });
  for (const name of [liqoCluster, isthmusCluster]) {
    const cluster = clusters.cluster(name);
    await logBodies(cluster);
    await cluster.restartController('kube-controller-manager', [
      `--cluster-signing-duration=${signedForSeconds[name]}s`,
    ]);
  }
  await Promise.all([
    installLiqo(clusters.cluster(liqoCluster), programs, helm, log),
    clusters.mustIsthmus(
      ...['install', '--kubeconfig', clusters.cluster(isthmusCluster).kubeconfigPath, '--cluster-id', isthmusCluster],
      ...['--image', clusters.image, '--no-network', ...moreThanThereIs],
    ),
  ]);
  return {
    clusters,
    liqoctl: programs.get('liqoctl') ?? '',
    close: () => clusters.close(),
  };
}

/** From here on its audit log has what is written. */
async function logBodies(cluster: BedCluster): Promise<void> {
  const file = path.join(cluster.dir, 'audit-policy.json');
  const usual = JSON.parse(await readFile(file, 'utf8')) as { readonly rules: readonly object[] };
  await writeFile(file, JSON.stringify(policyWithBodies(usual)));
  await cluster.stopApiServer();
  await cluster.startApiServer();
}

async function installLiqo(
  cluster: BedCluster,
  programs: ReadonlyMap<LiqoProgram, string>,
  helm: string,
  log: (line: string) => void,
): Promise<void> {
  const tag = `v${await liqoVersion()}`;
  for (const [program, name] of Object.entries(imageNames) as [LiqoProgram, string][]) {
    const file = { path: `/usr/bin/${program}`, mode: 0o755, content: await readFile(programs.get(program) ?? '') };
    const config = { entrypoint: [file.path], env: { PATH: '/usr/bin' } };
    await cluster.importImage(await imageTarOf(cacheDir(), `${name}:${tag}`, config, [file, ...emptyFolders]));
  }
  const values = {
    tag,
    'discovery.config.clusterID': cluster.name,
    'ipam.podCIDR': cluster.podCidr,
    'ipam.serviceCIDR': cluster.serviceCidr,
    'discovery.config.clusterLabels.region': 'south',
    'apiServer.address': cluster.apiServerUrl,
    // No kernel module for its overlay between nodes (Geneve) is to be had on the machines on which this runs.
    'networking.enabled': 'false',
    'networking.reflectIPs': 'false',
    'offloading.disableNetworkCheck': 'true',
    'proxy.enabled': 'false',
    'metricAgent.enabled': 'false',
    'telemetry.enabled': 'false',
  };
  const set = Object.entries(values).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  const where = ['--namespace', 'liqo', '--create-namespace', '--kubeconfig', cluster.kubeconfigPath];
  const wait = ['--wait', '--timeout', '240s'];
  await must(helm, ['install', 'liqo', await liqoChart(), ...where, ...set, ...wait], { timeoutMs: 300_000 });
  log(`${cluster.name}: Liqo ${tag} installed`);
}
