/** Records the exchanges of one world in both directions. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import { clusterRoles } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { liqoVersion } from '#test/testbed/build.ts';
import type { BedCluster } from '#test/testbed/testbed.ts';
import { believing } from '../believing.ts';
import type { Exchange, Manifest, Step } from '../exchange.ts';
import { writesIn } from './audit.ts';
import type { Place, Seen } from './capture.ts';
import { converse } from './conversation.ts';
import { isthmusCluster, liqoCluster } from './names.ts';
import { stepsBetween } from './parties.ts';
import type { LiqoWorld } from './world.ts';

/** The rights that Liqo gives a consumer: of its installation, so not written while two clusters peer. */
const rolesForPeers = /^liqo-(remote-controlplane|virtual-kubelet-remote(-clusterwide)?)$/;

/** First Liqo borrows from Isthmus, then Isthmus from Liqo. */
export async function recordExchanges(world: LiqoWorld, log: (line: string) => void): Promise<readonly Exchange[]> {
  const [liqo, isthmus] = [liqoCluster, isthmusCluster].map((name) => world.clusters.cluster(name)) as [
    BedCluster,
    BedCluster,
  ];
  await believeLabels(isthmus);
  const words = {
    romeApiServer: liqo.apiServerUrl,
    romeCa: await caOf(liqo),
    milanApiServer: isthmus.apiServerUrl,
    milanCa: await caOf(isthmus),
  };
  const exchanges: Exchange[] = [];
  for (const isthmusIs of ['provider', 'consumer'] as const) {
    const [consumer, provider] = isthmusIs === 'provider' ? [liqo, isthmus] : [isthmus, liqo];
    const since = new Date().toISOString();
    await converse({ consumer, provider, liqoctl: world.liqoctl, log, refuses: isthmusIs === 'provider' });
    const seen = await Promise.all([seenAt(liqo, liqoCluster, since), seenAt(isthmus, isthmusCluster, since)]);
    const steps = stepsBetween(seen.flat(), isthmusIs, words);
    exchanges.push({
      liqo: await liqoVersion(),
      isthmusIs,
      steps: isthmusIs === 'consumer' ? [...(await rolesAt(liqo)), ...steps] : steps,
    });
  }
  return exchanges;
}

const apiOf = async ({ kubeconfigPath }: BedCluster) =>
  createKubeApi(await connectKubeconfig(await readFile(kubeconfigPath, 'utf8')), {
    clock: systemClock,
    log: silentLog,
  });

async function caOf({ dir }: BedCluster): Promise<string> {
  return Buffer.from(await readFile(path.join(dir, 'pki', 'ca.crt'))).toString('base64');
}

async function believeLabels(cluster: BedCluster): Promise<void> {
  const api = await apiOf(cluster);
  await api.create(peeringPolicies, believing);
}

async function rolesAt(cluster: BedCluster): Promise<readonly Step[]> {
  const api = await apiOf(cluster);
  const roles = (await api.list(clusterRoles)).filter(({ metadata }) => rolesForPeers.test(metadata.name));
  return roles.map(({ metadata: { name, labels = {} }, rules }) => ({
    by: 'the installation of Liqo',
    at: liqoCluster,
    create: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name, labels: { 'app.kubernetes.io/name': labels['app.kubernetes.io/name'] } },
      rules,
    } as Manifest,
  }));
}

const seenAt = async (cluster: BedCluster, at: Place, since: string): Promise<readonly Seen[]> =>
  (await writesIn(path.join(cluster.dir, 'audit.log')))
    .filter((write) => write.at >= since)
    .map((write) => ({ at, write }));
