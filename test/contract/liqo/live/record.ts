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
import { type Write, writesIn } from './audit.ts';
import { type Place, type Seen, stepsOf } from './capture.ts';
import { converse } from './conversation.ts';
import { Words } from './words.ts';
import { isthmusCluster, type LiqoWorld, liqoCluster } from './world.ts';

const tenantNamespaces = [liqoCluster, isthmusCluster].map((name) => `liqo-tenant-${name}`);
const remoteNamespaces = [liqoCluster, isthmusCluster].map((name) => `shop-${name}`);
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
    await converse({ consumer, provider, liqoctl: world.liqoctl, log });
    const seen = (await Promise.all([seenAt(liqo, liqoCluster, since), seenAt(isthmus, isthmusCluster, since)]))
      .flat()
      .sort((a, b) => (a.write.at < b.write.at ? -1 : a.write.at > b.write.at ? 1 : 0));
    const concerns = isthmusIs === 'provider' ? atProviderOfOurs : atConsumerOfOurs;
    exchanges.push({
      liqo: await liqoVersion(),
      isthmusIs,
      steps: [
        ...(isthmusIs === 'consumer' ? await rolesAt(liqo) : []),
        ...stepsOf(seen, new Words(words), writerOf, concerns),
      ],
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

function writerOf({ user, groups, program }: Write, at: Place): string | undefined {
  if (user === 'admin') return program === 'liqoctl' ? 'liqoctl' : 'user';
  if (user.startsWith('system:node:')) return 'kubelet';
  const peer = at === liqoCluster ? isthmusCluster : liqoCluster;
  const isPeer = user === peer || groups.includes(peer);
  if (at === isthmusCluster)
    return isPeer ? program : user.startsWith('system:serviceaccount:liqo:') ? 'isthmus' : undefined;
  if (isPeer) return 'isthmus';
  return /^system:serviceaccount:liqo(-tenant-\w+)?:/.test(user) ? program : undefined;
}

/** Everything here that a peer or its liqoctl writes, and what is brought about of it. */
function atProviderOfOurs({ at, write }: Seen, by: string): boolean {
  return at === isthmusCluster && by !== 'kubelet' && by !== 'user' && isAboutPeer(write);
}

/** At home, and of the provider what a consumer can see there. */
function atConsumerOfOurs({ at, write }: Seen, by: string): boolean {
  if (at === isthmusCluster) return isAboutPeer(write);
  if (by === 'user' || !isAboutPeer(write)) return false;
  if (by === '') return false;
  const { kind } = write.type;
  return !(['Quota', 'ClusterRoleBinding'].includes(kind) || (kind === 'Secret' && write.name !== 'liqo-nonce'));
}

function isAboutPeer({ type, namespace, name }: Write): boolean {
  if (type.kind === 'Namespace') return [...tenantNamespaces, ...remoteNamespaces, 'shop'].includes(name);
  if (namespace === '') return name.startsWith('liqo-binding-');
  return [...tenantNamespaces, ...remoteNamespaces, 'shop'].includes(namespace) && !name.startsWith('kube-root-ca');
}
