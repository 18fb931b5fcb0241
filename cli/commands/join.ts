/** isthmus join: installs or updates the agent in a cluster and brings it to the broker. */
import { createHash } from 'node:crypto';
import { Command } from 'commander';
import { type BrokerClient, openBroker } from '#cli/broker/broker-client.ts';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import { retryReads } from '#cli/cluster/retry.ts';
import { type ClusterState, orUndefined } from '#cli/install/cluster-state.ts';
import { installAgent, manifestsFor } from '#cli/install/install-agent.ts';
import { type OwnKey, ownKeyOf } from '#cli/install/own-key.ts';
import { settleStorage } from '#cli/install/settle-storage.ts';
import { holder, signCluster } from '#cli/lock/cluster-lock.ts';
import { lockFile, ownLockKey, readLockKey } from '#cli/lock/lock-key.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printManifests } from '#cli/output/print.ts';
import { createProgress, during, type Progress } from '#cli/output/progress.ts';
import { preflight } from '#cli/preflight/preflight.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Cluster } from '#shared/schema/api/resources.ts';
import type { InstallFlags } from '../install/install-flags.ts';
import { installOptions } from './install-options.ts';
import { clusterName, timeoutMsOf } from './options.ts';

export const joinCommand = (io: CliIo): Command =>
  installOptions(new Command('join').argument('<name>', 'name of the cluster, by which peers know it', clusterName))
    .addHelpText(
      'after',
      `
Needs a login at the broker and administrator rights in the cluster. Running it again updates the agent and repairs what is missing.
A cluster that has joined keeps its key. After \`isthmus rotate-key\` the former key proves the new one. A cluster that has lost its key needs
--replace-key, for which the login needs the permission clusters:replace-key (role admin). With -o the broker is not asked, and its token,
which is of use once, is left out.

Example:
  isthmus join rome --kubeconfig rome.kubeconfig`,
    )
    .option('--replace-key', 'let the cluster of this name have another key, without a proof of the former one')
    .action((name: string, options: JoinFlags) => join(io, name, options));

type JoinFlags = InstallFlags & { readonly replaceKey?: boolean };

async function prepared(io: CliIo, progress: Progress, kube: KubeClient, name: string, options: JoinFlags) {
  const { apiServerUrl, state, network, platform, profile } = await preflight(io, progress, kube, options, {
    clusterId: name,
    remedy: (known) =>
      `update it with \`isthmus join ${known} …\`, or let it leave first with \`isthmus leave ${known} --kubeconfig FILE\``,
  });
  const storage = await settleStorage(kube, options);
  return { clusterId: name, apiServerUrl, state, network, storage, platform, profile };
}

/** Without the token of the broker, which is of use once. */
async function printed(io: CliIo, name: string, format: 'json' | 'yaml', options: JoinFlags): Promise<void> {
  const kube = retryReads(io, await openCluster(options, io));
  const ready = await prepared(io, createProgress(io), kube, name, options);
  const { joinStamp } = ready.state;
  const installation = { ...ready, joinStamp, deadline: io.clock.now() + timeoutMsOf(options) };
  printManifests(io, format, manifestsFor(options, installation).manifests);
}

async function join(io: CliIo, name: string, options: JoinFlags): Promise<void> {
  if (options.output !== undefined) return printed(io, name, options.output, options);
  const broker = await openBroker(io);
  try {
    const progress = createProgress(io);
    const startedAt = io.clock.now();
    const kube = retryReads(io, await openCluster(options, io));
    const ready = await prepared(io, progress, kube, name, options);
    const { state } = ready;
    const { token, before } = await tokenIfNeeded(broker, progress, name, {
      ...state,
      key: await ownKeyOf(kube),
      replaceKey: options.replaceKey === true,
    });
    const joinStamp =
      token === undefined ? state.joinStamp : createHash('sha256').update(token).digest('hex').slice(0, 16);
    const deadline = startedAt + timeoutMsOf(options);
    await installAgent(io, progress, kube, options, { ...ready, joinToken: token, joinStamp, deadline });
    await during(progress, 'peering lock', async () => {
      const { tenant } = await broker.api.getMe();
      const known = await readLockKey(io);
      const lock = known ?? (await ownLockKey(io));
      if (known === undefined)
        progress.note(
          `made your lock key, ${lockFile(io)}: back it up, clusters of your account trust each other by it`,
        );
      const signing = { tenant, clusterId: name, lock, holder: holder(), at: io.clock.now() };
      // The agent makes the key pair as it starts.
      await poll(
        io,
        deadline - io.clock.now(),
        () => signCluster(kube, signing),
        () => new AppError('deadline_exceeded', `the agent of ${name} has not made its key pair`),
      );
    });
    const cluster = await during(progress, 'broker', () =>
      waitForConnection(io, broker, name, {
        // An agent that enrols has to report again; one that is only updated may stay as silent as it was.
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

interface Joining extends Pick<ClusterState, 'link'> {
  /** Undefined: the cluster has none yet. */
  readonly key: OwnKey | undefined;
  readonly replaceKey: boolean;
}

/** A cluster that the broker knows and that knows the broker needs none: joining again only updates it. */
async function tokenIfNeeded(
  broker: BrokerClient,
  progress: Progress,
  name: string,
  { link, key, replaceKey }: Joining,
): Promise<{ readonly token?: string; readonly before?: Cluster }> {
  const [me, known] = await Promise.all([
    broker.api.getMe(),
    orUndefined(orUndefined(broker.api.getCluster({ path: { cluster: name } }), 'not_found'), 'cluster_unknown'),
  ]);
  const isLinked = link?.spec.tenant === me.tenant;
  const isKnownKey = key !== undefined && known?.keyThumbprint === key.thumbprint;
  if (known?.state === 'joined' && isLinked && isKnownKey) {
    progress.note('already joined: updating the agent');
    return { before: known };
  }
  if (known?.state === 'joined' && known.online && !isLinked) {
    throw new AppError('already_exists', `another cluster is connected to the broker as ${name}`, {
      detail: {
        field: 'name',
        value: name,
        remedy: `choose another name, or let that one leave with \`isthmus leave ${name}\``,
      },
    });
  }
  if (known?.state === 'joined' && !isKnownKey && key?.isSuccessor !== true && !replaceKey) {
    throw new AppError('cluster_key_known', `the broker knows ${name} by another key than this cluster has`, {
      detail: {
        field: 'name',
        value: name,
        remedy: `choose another name, or, if it is the same cluster and its key is lost, add --replace-key; that needs a login with role admin`,
      },
    });
  }
  const { token } = await during(progress, 'join token', () =>
    broker.api.createJoinToken({ body: { cluster: name, ...(replaceKey && { replaceKey }) } }, { repeatable: true }),
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
      const cluster = await orUndefined(
        orUndefined(broker.api.getCluster({ path: { cluster: name } }), 'not_found'),
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
