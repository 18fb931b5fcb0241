/** What the administrators and a user of two clusters do while one of them borrows from the other, with an unmodified liqoctl: from its first to its last command. */
import { readFile } from 'node:fs/promises';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { type CoreEvent, coreEvents, namespaces, nodes, pods, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { eventually } from '#test/harness/eventually.ts';
import { must } from '#test/harness/program.ts';
import type { BedCluster } from '#test/testbed/testbed.ts';
import { believing } from '../believing.ts';

export interface Parties {
  readonly consumer: BedCluster;
  readonly provider: BedCluster;
  /** Path of the program. */
  readonly liqoctl: string;
  readonly log: (line: string) => void;
  /** Whether the provider runs Isthmus. */
  readonly refuses: boolean;
}

const shop = 'shop';
const patience = { withinMs: 180_000, everyMs: 250 } as const;

/**
 * On the virtual node by name, so that no scheduler has a part in it; without a token, whose volume has another name each time. It requests nothing, as
 * most pods: its QoS class has to be the same at home and abroad.
 */
const guest = (node: string, name = 'web'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: shop, labels: { app: name } },
  spec: {
    nodeName: node,
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'web', image: 'isthmus.test/workload:1', args: ['serve'] }],
    tolerations: [{ key: 'virtual-node.liqo.io/not-allowed', operator: 'Exists', effect: 'NoExecute' }],
  } as never,
});

/** Ends when both clusters have nothing of the peering left but what they keep. */
export async function converse({ consumer, provider, liqoctl, log, refuses }: Parties): Promise<void> {
  const tell = async (...args: readonly string[]): Promise<void> => {
    log(`liqoctl ${args.join(' ')}`);
    await must(liqoctl, [...args, '--skip-confirm'], { timeoutMs: 300_000 });
  };
  const of = ({ kubeconfigPath }: BedCluster): string[] => ['--kubeconfig', kubeconfigPath];
  const both = [...of(consumer), '--remote-kubeconfig', provider.kubeconfigPath];
  const connections = await Promise.all([consumer, provider].map(connectionTo));
  const [home, abroad] = connections.map((connection) =>
    createKubeApi(connection, { clock: systemClock, log: silentLog }),
  ) as [KubeApi, KubeApi];
  try {
    const asked = ['--cpu', '2', '--memory', '1Gi', '--pods', '10'];
    await tell('peer', ...both, '--networking-disabled', ...asked, '--timeout', '3m');
    const first = await eventually('both identities', () => certificates(home), patience);
    await eventually('the virtual node is Ready', () => isNodeReady(home, provider.name), patience);
    await useIt(home);
    log('waiting for renewed certificates');
    await eventually(
      'other certificates',
      async () => {
        const now = await certificates(home);
        return now?.every((one) => !first.includes(one));
      },
      { withinMs: 300_000, everyMs: 500 },
    );
    await tell('cordon', 'tenant', consumer.name, ...of(provider));
    await isCordoned(abroad, true);
    await tell('uncordon', 'tenant', consumer.name, ...of(provider));
    await isCordoned(abroad, false);
    await tell('unpeer', ...both, '--delete-namespaces', '--timeout', '3m');
  } finally {
    for (const connection of connections) connection.close();
  }

  function setDefaultLimits(defaultLimits: object | null): Promise<unknown> {
    const asProvider = defaultLimits && { peers: ['*'], guests: { defaultLimits } };
    return abroad.mergePatch(peeringPolicies, { name: believing.metadata.name }, { spec: { asProvider } });
  }

  /** Liqo's virtual kubelet says so on the pod. Nothing of it comes to be abroad, so it is no part of an exchange. */
  async function isRefused(api: KubeApi): Promise<void> {
    await api.create(pods, guest(provider.name, 'unlimited'));
    const said = await eventually(
      'the reason on the pod',
      async () => {
        const about = (await api.list(coreEvents, { namespace: shop })) as readonly CoreEvent[];
        return about.find(({ involvedObject, type }) => involvedObject.name === 'unlimited' && type === 'Warning')
          ?.message;
      },
      patience,
    );
    log(`at home: ${said}`);
    if (!/limits has no memory: .*Burstable instead of BestEffort.*\(sandbox_refused\)/.test(said))
      throw new Error(`Liqo gives another reason: ${said}`);
    await remove(api, 'unlimited');
  }

  async function useIt(api: KubeApi): Promise<void> {
    await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: shop } });
    await eventually('its account', () => api.get(serviceAccounts, { namespace: shop, name: 'default' }));
    await tell(
      'offload',
      'namespace',
      shop,
      '--pod-offloading-strategy',
      'Remote',
      ...of(consumer),
      '--timeout',
      '60s',
    );
    await api.create(pods, guest(provider.name));
    const ref = { namespace: shop, name: 'web' };
    await eventually('the pod is Ready', async () => isReady((await api.get(pods, ref))?.status?.conditions), patience);
    if (refuses) await setDefaultLimits({ memory: '128Mi' });
    await remove(api, 'web');
    if (refuses) {
      await isRefused(api);
      await setDefaultLimits(null);
    }
    await tell('unoffload', 'namespace', shop, ...of(consumer));
  }
}

async function remove(api: KubeApi, name: string): Promise<void> {
  const ref = { namespace: shop, name };
  await api.delete(pods, ref);
  await eventually('the pod is gone', async () => (await api.get(pods, ref)) === undefined, patience);
}

const connectionTo = ({ kubeconfigPath }: BedCluster) =>
  readFile(kubeconfigPath, 'utf8').then((text) => connectKubeconfig(text));

const isReady = (conditions: readonly { type: string; status: string }[] = []): boolean =>
  conditions.some(({ type, status }) => type === 'Ready' && status === 'True');

const isNodeReady = async (api: KubeApi, name: string): Promise<boolean> =>
  isReady((await api.get(nodes, { name }))?.status?.conditions);

/** Of the control plane and of the slice; undefined until there are both. */
async function certificates(api: KubeApi): Promise<readonly string[] | undefined> {
  const found = (await api.list(identities)).map(({ spec }) => spec.authParams?.signedCRT ?? '');
  return found.length === 2 && found.every((one) => one !== '') ? found : undefined;
}

const isCordoned = (api: KubeApi, wanted: boolean): Promise<true> =>
  eventually(
    wanted ? 'the quota is cordoned' : 'the quota is not cordoned',
    async () => {
      const [quota] = await api.list(quotas);
      return quota !== undefined && (quota.spec.cordoned ?? false) === wanted ? true : undefined;
    },
    patience,
  );
