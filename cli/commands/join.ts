/** isthmus join: installs or updates the agent in a cluster and brings it to the broker. */
import { createHash } from 'node:crypto';
import { Command, Option } from 'commander';
import { type BrokerClient, openBroker } from '#cli/broker/broker-client.ts';
import { applyManifests, poll, waitForAgent, waitForFabric } from '#cli/install/apply.ts';
import { type ClusterState, orUndefined, readCluster } from '#cli/install/cluster-state.ts';
import { agentManifests } from '#cli/install/manifests.ts';
import { settleNetwork } from '#cli/install/read-ranges.ts';
import type { CliIo } from '#cli/io.ts';
import { openCluster } from '#cli/kube/kube-client.ts';
import { createProgress, during, type Progress } from '#cli/output/progress.ts';
import { agentImage } from '#cli/version.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Cluster, JoinTokenAnswer, Me } from '#shared/schema/api/resources.ts';
import {
  clusterName,
  collect,
  contextOption,
  kubeconfigOption,
  labelList,
  positiveInt,
  timeoutMsOf,
  timeoutOption,
} from './options.ts';

interface JoinOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly image?: string;
  readonly apiServerUrl?: string;
  readonly replicas?: number;
  readonly labels: Record<string, string>;
  readonly network: boolean;
  readonly podCidr: readonly string[];
  readonly serviceCidr?: string;
  readonly externalCidr?: string;
  readonly internalCidr?: string;
  readonly reservedSubnet: readonly string[];
  readonly gatewayReplicas?: number;
  readonly fullMasquerade?: boolean;
  readonly timeout: string;
}

export const joinCommand = (io: CliIo): Command =>
  new Command('join')
    .description('install or update the agent in a cluster and connect it to the broker')
    .argument('<name>', 'name of the cluster, by which peers know it', clusterName)
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .option('--image <ref>', `image of the agent (default: what is installed, else ${agentImage})`)
    .option('--api-server-url <url>', "how peers reach this cluster's API server (default: as in the kubeconfig)")
    .option('--replicas <n>', 'replicas of the agent (default: 2, or 1 with a single node)', positiveInt)
    .option('--labels <key=value,...>', 'labels of the cluster for its peers; may be repeated', labelList, {})
    .option('--no-network', 'install no network between clusters')
    .addOption(listOption('--pod-cidr <cidr>', 'range of the pods; may be repeated', 'found in the cluster'))
    .option('--service-cidr <cidr>', 'range of the Services (default: found in the cluster)')
    .option('--external-cidr <cidr>', 'range by which peers reach what is no pod (default: by the name of the cluster)')
    .option('--internal-cidr <cidr>', 'range of the addresses between nodes and gateways (default: 10.80.0.0/16)')
    .addOption(listOption('--reserved-subnet <cidr>', 'range that peers must never get here; may be repeated', 'none'))
    .option('--gateway-replicas <n>', 'pods of each gateway, one active (default: 1)', positiveInt)
    .option('--full-masquerade', 'pods reach peers by the address of their node (default: as the CNI needs it)')
    .addOption(timeoutOption('3m'))
    .addHelpText(
      'after',
      `
Needs a login at the broker and administrator rights in the cluster. Running it again updates the agent and repairs what is missing.

Example:
  isthmus join rome --kubeconfig rome.kubeconfig`,
    )
    .action((name: string, options: JoinOptions) => join(io, name, options));

/** A node may be down: that is no reason not to join. */
const fabricPatienceMs = 30_000;

const listOption = (flags: string, description: string, preset: string): Option =>
  new Option(flags, description).argParser(collect).default([], preset);

async function join(io: CliIo, name: string, options: JoinOptions): Promise<void> {
  const broker = await openBroker(io);
  try {
    const progress = createProgress(io);
    const startedAt = io.clock.now();
    const kube = await openCluster(options, io.signal);
    const apiServerUrl = peerUrl(options.apiServerUrl, kube.server);
    const state = await during(progress, 'looking at the cluster', async (step) => {
      step.update(await kube.version());
      const found = await readCluster(kube);
      refuseOther(found, name);
      return found;
    });
    const network = options.network
      ? await during(progress, 'ranges', async (step) => {
          const settled = await settleNetwork(kube, name, options);
          step.update(settled.notes.join('; '));
          return settled;
        })
      : undefined;
    const { token, before } = await tokenIfNeeded(broker, progress, name, state);
    const joinStamp =
      token === undefined ? state.joinStamp : createHash('sha256').update(token).digest('hex').slice(0, 16);
    const manifests = agentManifests({
      clusterId: name,
      image: options.image ?? state.image ?? agentImage,
      apiServerUrl,
      replicas: options.replicas ?? Math.max(1, Math.min(2, state.schedulableNodes)),
      labels: options.labels,
      ...(network !== undefined && { network }),
      ...(token !== undefined && { joinToken: token }),
      ...(joinStamp !== undefined && { joinStamp }),
    });
    const deadline = startedAt + timeoutMsOf(options);
    await during(progress, 'applying', (step) => applyManifests(io, kube, manifests, step));
    await during(progress, 'agent', (step) => waitForAgent(io, kube, deadline - io.clock.now(), step));
    if (network !== undefined) {
      const patience = Math.min(fabricPatienceMs, deadline - io.clock.now());
      const trouble = await during(progress, 'node processes', (step) => waitForFabric(io, kube, patience, step));
      if (trouble !== undefined) progress.note(trouble);
    }
    const cluster = await during(progress, 'broker', () =>
      waitForConnection(io, broker, name, {
        // An agent that enrols is heard anew; one that is only updated may be as quiet as it was.
        heardSince: token === undefined ? undefined : before?.lastSeenAt,
        timeoutMs: deadline - io.clock.now(),
      }),
    );
    io.stdout.write(
      `cluster ${name} is connected: Kubernetes ${cluster.kubernetesVersion}, agent ${cluster.agentVersion}, ${cluster.nodes} node${cluster.nodes === 1 ? '' : 's'}, API server for peers ${cluster.apiServerUrl}\n`,
    );
  } finally {
    broker.close();
  }
}

const loopback = /^(localhost|127\.|\[::1\])/;

function peerUrl(asked: string | undefined, server: string): string {
  const text = asked ?? server;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:') {
    throw new AppError(
      'invalid_input',
      `the API server URL is ${JSON.stringify(text)}, accepted is https://HOST:PORT`,
      {
        detail: { field: 'api-server-url', value: text },
      },
    );
  }
  if (asked === undefined && loopback.test(url.host)) {
    throw new AppError('invalid_input', `the kubeconfig names the API server ${server}, which peers cannot reach`, {
      detail: {
        field: 'api-server-url',
        value: server,
        remedy: 'say with --api-server-url https://HOST:PORT how other clusters reach this API server',
      },
    });
  }
  return url.href.replace(/\/+$/, '');
}

function refuseOther({ clusterId }: ClusterState, name: string): void {
  if (clusterId === undefined || clusterId === name) return;
  throw new AppError('already_exists', `this cluster has joined as ${clusterId} and cannot be ${name} as well`, {
    detail: {
      remedy: `update it with \`isthmus join ${clusterId} …\`, or let it leave first with \`isthmus leave ${clusterId} --kubeconfig FILE\``,
    },
  });
}

/** A cluster that the broker knows and that knows the broker needs none: joining again only updates it. */
async function tokenIfNeeded(
  broker: BrokerClient,
  progress: Progress,
  name: string,
  { link }: ClusterState,
): Promise<{ readonly token?: string; readonly before?: Cluster }> {
  const path = `/v1/clusters/${encodeURIComponent(name)}`;
  const [me, known] = await Promise.all([
    broker.call({ method: 'GET', path: '/v1/tenants/me', answer: Me }),
    orUndefined(orUndefined(broker.call({ method: 'GET', path, answer: Cluster }), 'not_found'), 'cluster_unknown'),
  ]);
  if (known?.state === 'joined' && link?.spec.tenant === me.tenant) {
    progress.note('already joined: updating the agent');
    return { before: known };
  }
  if (known?.state === 'joined' && known.online) {
    throw new AppError('already_exists', `another cluster is connected to the broker as ${name}`, {
      detail: {
        field: 'name',
        value: name,
        remedy: `choose another name, or let that one leave with \`isthmus leave ${name}\``,
      },
    });
  }
  const { token } = await during(progress, 'join token', () =>
    broker.call({
      method: 'POST',
      path: '/v1/join-tokens',
      body: { cluster: name },
      repeatable: true,
      answer: JoinTokenAnswer,
    }),
  );
  return { token, ...(known && { before: known }) };
}

const waitForConnection = (
  io: CliIo,
  broker: BrokerClient,
  name: string,
  { heardSince, timeoutMs }: { readonly heardSince: string | undefined; readonly timeoutMs: number },
): Promise<Cluster> =>
  poll(
    io,
    timeoutMs,
    async () => {
      const path = `/v1/clusters/${encodeURIComponent(name)}`;
      const cluster = await orUndefined(
        orUndefined(broker.call({ method: 'GET', path, answer: Cluster }), 'not_found'),
        'cluster_unknown',
      );
      const heard = cluster?.state === 'joined' && cluster.online && cluster.lastSeenAt !== heardSince;
      return heard ? cluster : undefined;
    },
    () =>
      new AppError('deadline_exceeded', `the agent runs, but the broker has not heard from ${name}`, {
        detail: {
          remedy: `pods of the cluster must reach ${broker.url}; the agent's log says what it tries: kubectl -n liqo logs deploy/isthmus-agent`,
        },
      }),
  );
