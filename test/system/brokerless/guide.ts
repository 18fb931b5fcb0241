/** The manifests of Liqo's guide "Declarative peering", word for word, with names and addresses filled in as its reader would. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { eventually } from '#test/harness/eventually.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { shuffled } from '../declarative/orders.ts';
import { type ClusterName, clusterNames, consumer, reported, type Stage } from '../whole-clusters/stage.ts';

/** Documents of YAML text, for each cluster. */
export type Guide = Readonly<Record<ClusterName, readonly string[]>>;

export interface GuideFacts {
  /** Ranges of each cluster, as `kubectl get networks` prints them there. */
  readonly ranges: Readonly<Record<ClusterName, { readonly pod: string; readonly external: string }>>;
  /** Of a node of the provider. */
  readonly serverAddress: string;
  /** Credentials at the provider that its administrator issued, and the CN in them. */
  readonly kubeconfig: string;
  readonly user: string;
}

/** As `openssl genpkey -algorithm X25519 -outform der … | tail -c 32 | base64` makes them. */
function wireGuardKeys(): { readonly privateKey: string; readonly publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('x25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
    publicKeyEncoding: { type: 'spki', format: 'der' },
  });
  const last32 = (der: Buffer): string => der.subarray(-32).toString('base64');
  return { privateKey: last32(privateKey), publicKey: last32(publicKey) };
}

const folder = path.join(repositoryRoot, 'test', 'system', 'brokerless', 'guide');
const ids = { consumer: 'rome', provider: 'milan' } as const;
const tenantNamespaces = { rome: `liqo-tenant-${ids.provider}`, milan: `liqo-tenant-${ids.consumer}` } as const;

function documentsOf(role: 'consumer' | 'provider', values: Readonly<Record<string, string>>): string[] {
  const text = readFileSync(path.join(folder, `${role}.yaml`), 'utf8')
    .replaceAll('cl-provider', ids.provider)
    .replaceAll('cl-consumer', ids.consumer)
    .replaceAll(/<([A-Z_0-9]+)>/g, (whole, name: string) => {
      const value = values[name];
      if (value === undefined) throw new Error(`${role}.yaml: no value for ${whole}`);
      return value;
    });
  return text.split(/^---\n/m);
}

export function guideFor({ ranges, serverAddress, kubeconfig, user }: GuideFacts): Guide {
  const keys = { rome: wireGuardKeys(), milan: wireGuardKeys() };
  const both = (own: ClusterName, peer: ClusterName) => ({
    REMOTE_CLUSTER_ID: peer,
    HERE_THE_CLUSTER_ID_OF_PEER_CLUSTER: peer,
    CONSUMER_CLUSTER_ID: ids.consumer,
    PROVIDER_CLUSTER_ID: ids.provider,
    TENANT_NAMESPACE: tenantNamespaces[own],
    CONSUMER_TENANT_NAMESPACE: tenantNamespaces.rome,
    PROVIDER_TENANT_NAMESPACE: tenantNamespaces.milan,
    REMOTE_POD_CIDR: ranges[peer].pod,
    REMOTE_EXTERNAL_CIDR: ranges[peer].external,
    WIREGUARD_KEYS_SECRET_NAME: 'gw-keys',
    WIREGUARD_PRIVATE_KEY: keys[own].privateKey,
    WIREGUARD_PUBLIC_KEY: keys[own].publicKey,
    REMOTE_WIREGUARD_PUBLIC_KEY: keys[peer].publicKey,
    REMOTE_IP: serverAddress,
    BASE64_KUBECONFIG: Buffer.from(kubeconfig).toString('base64'),
    USER_COMMON_NAME: user,
  });
  return {
    rome: documentsOf('consumer', both('rome', 'milan')),
    milan: documentsOf('provider', both('milan', 'rome')),
  };
}

const orderOf = (guide: Guide, cluster: ClusterName, seed: number): string[] =>
  shuffled(guide[cluster], cluster === consumer ? seed : seed * 7 + 1);

/** Both sides at once, each document by itself; what cannot be applied yet is tried again after the others. */
export async function applyGuide(stage: Stage, guide: Guide, seed: number): Promise<void> {
  const applyTo = async (cluster: ClusterName): Promise<void> => {
    const queue = orderOf(guide, cluster, seed);
    await eventually(
      `${cluster} takes all manifests`,
      async () => {
        const refused: string[] = [];
        for (let left = queue.length; left > 0; left--) {
          const document = queue.shift() ?? '';
          const ended = await stage.kubectl(cluster, ['apply', '-f', '-'], document);
          if (ended.code === 0) continue;
          queue.push(document);
          refused.push(reported(ended));
        }
        if (refused.length > 0) throw new Error(refused.join('\n'));
        return true;
      },
      { withinMs: 60_000, everyMs: 100 },
    );
  };
  await Promise.all(clusterNames.map(applyTo));
}

/** Both sides at once, without waiting for anything to be gone. */
export async function deleteGuide(stage: Stage, guide: Guide, seed: number): Promise<void> {
  const line = ['delete', '--wait=false', '--ignore-not-found', '-f', '-'];
  const deleteFrom = async (cluster: ClusterName): Promise<void> => {
    for (const document of orderOf(guide, cluster, seed * 3 + 1)) {
      const ended = await stage.kubectl(cluster, line, document);
      if (ended.code !== 0) throw new Error(reported(ended));
    }
  };
  await Promise.all(clusterNames.map(deleteFrom));
}
