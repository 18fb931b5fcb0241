/** `isthmus unpeer --force --kubeconfig`: takes one side of a peering down without the other, and says what that leaves behind. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { openCluster } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import { retryAll } from '#cli/cluster/retry.ts';
import { peeringNotice } from '#cli/offload/kept-data.ts';
import { elapsed } from '#cli/output/duration.ts';
import type { CliIo } from '#cli/output/io.ts';
import { createProgress, during, type Step } from '#cli/output/progress.ts';
import { configMaps, namespaces, pods } from '#shared/domain/core-kinds.ts';
import { type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { annotation, clusterIdConfigMap, isthmusLabel, label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { evidenceOf, leftBehind, type Shared } from './force.ts';

export interface ForceTarget {
  readonly kubeconfig: string;
  readonly context?: string;
  /** The user knows that the peer is gone, where nothing here can tell. */
  readonly yes: boolean;
  readonly timeoutMs: number;
}

interface Side {
  readonly kube: KubeClient;
  readonly self: string;
  readonly peer: string;
}

export async function forceUnpeer(io: CliIo, consumer: string, provider: string, target: ForceTarget): Promise<void> {
  const progress = createProgress(io);
  const kube = retryAll(io, await openCluster(target, io));
  const self = await sideOf(kube, consumer, provider);
  const side: Side = { kube, self, peer: self === consumer ? provider : consumer };
  const foreign = await foreignOf(side);
  if (foreign === undefined) {
    throw new AppError('not_found', `${self} has no peering with ${side.peer}: it has no ForeignCluster of that ID`, {
      detail: { remedy: 'list peers with `kubectl get foreignclusters`' },
    });
  }
  await refuseBrokers(side, consumer, provider);
  await during(progress, `evidence that ${side.peer} is gone`, (step) => mustBeGone(io, side, target, step));
  const shared = await sharedWith(side, foreign);
  io.stderr.write(await peeringNotice(kube, self, { consumer, provider }));
  const dead = { metadata: { annotations: { [annotation.permanentlyUnreachable]: 'true' } } };
  await kube.mergePatch(foreignClusters, { name: foreign.metadata.name }, dead);
  await during(progress, `removing what ${self} shares with ${side.peer}`, (step) =>
    takeDown(io, side, target.timeoutMs, step),
  );
  const both = foreign.status?.role === 'ConsumerAndProvider' ? ', in both directions' : '';
  io.stdout.write(`${self} is free of ${side.peer}${both}\n`);
  const left = leftBehind(shared);
  if (left.length > 0) io.stderr.write('left behind, as nothing could be asked of the other side:\n');
  for (const what of left) io.stderr.write(`  ${what}\n`);
  io.stderr.write(
    `should ${side.peer} come back, free it too: isthmus unpeer ${consumer} ${provider} --force --yes --kubeconfig FILE-OF-${side.peer.toUpperCase()}\n`,
  );
}

/** Which of both the cluster is; `invalid_input`: neither. */
export async function sideOf(kube: KubeClient, consumer: string, provider: string): Promise<string> {
  const self = (await kube.get(configMaps, { namespace: systemNamespace, name: clusterIdConfigMap }))?.data?.CLUSTER_ID;
  if (self === consumer || self === provider) return self;
  throw new AppError(
    'invalid_input',
    `the kubeconfig is that of ${self === undefined ? 'a cluster without Isthmus' : `cluster ${self}`}; accepted is that of ${consumer} or ${provider}`,
    { detail: { field: 'kubeconfig', value: self ?? '', accepted: [consumer, provider] } },
  );
}

const foreignOf = async ({ kube, peer }: Side): Promise<ForeignCluster | undefined> =>
  (await kube.list(foreignClusters)).find(({ spec }) => spec.clusterID === peer);

const isBrokers = ({ metadata }: KubeObject): boolean => metadata.labels?.[isthmusLabel.peering] !== undefined;

/** What a broker wants here, its agent would make again. */
async function refuseBrokers({ kube, self, peer }: Side, consumer: string, provider: string): Promise<void> {
  const link = await kube.get(brokerLinks, { name: 'broker' });
  if (link === undefined) return;
  const ofPeer = `${label.remoteClusterId}=${peer}`;
  const [held, given] = await Promise.all([kube.list(identities, ofPeer), kube.list(tenants, ofPeer)]);
  if (![...held, ...given].some(isBrokers)) return;
  throw new AppError('in_use', `the broker ${link.spec.url} wants this peering, and the agent of ${self} obeys it`, {
    detail: { remedy: `end it there, without --kubeconfig: isthmus unpeer ${consumer} ${provider} --force` },
  });
}

/** Fails with `peer_alive` while anything of the peer answers. */
async function mustBeGone(io: CliIo, side: Side, { yes, timeoutMs }: ForceTarget, step: Step): Promise<void> {
  const { peer } = side;
  await poll(
    io,
    timeoutMs,
    async () => {
      const foreign = await foreignOf(side);
      const evidence = foreign === undefined ? ({ kind: 'none' } as const) : evidenceOf(foreign, io.clock.now());
      if (evidence.kind === 'alive' && !(yes && evidence.what !== 'its API server')) {
        throw new AppError('peer_alive', `${peer} is not gone: ${evidence.what} answers`, {
          detail: {
            remedy: 'unpeer without --force; --yes overrules a link that answers, never an API server that does',
          },
        });
      }
      if (yes) return true;
      if (evidence.kind === 'none') {
        throw new AppError('invalid_input', `nothing here ever talked to ${peer}: neither its API server nor a link`, {
          detail: { field: '--yes', remedy: `if you know that ${peer} is gone for ever, say so with --yes` },
        });
      }
      if (evidence.kind === 'early')
        step.update(`${evidence.what}; a second look in ${elapsed(Math.ceil(evidence.waitMs))}`);
      else step.update(evidence.kind === 'gone' ? evidence.what : '');
      return evidence.kind === 'gone' ? true : undefined;
    },
    () =>
      new AppError('deadline_exceeded', `there is no second evidence yet that ${peer} is gone`, {
        detail: { remedy: 'wait longer with --timeout' },
      }),
  );
}

/** Peers may name their tenant namespaces as they like. */
const tenantNamespaces = async ({ kube, peer }: Side): Promise<KubeObject[]> =>
  kube.list(namespaces, `${label.tenantNamespace}=true,${label.remoteClusterId}=${peer}`);

const slicesOf = async ({ kube, peer }: Side): Promise<KubeObject[]> =>
  kube.list(resourceSlices, `${label.replication}=true,${label.remoteId}=${peer}`);

async function sharedWith(side: Side, foreign: ForeignCluster): Promise<Shared> {
  const { kube, self, peer } = side;
  const nodes = (await kube.list(virtualNodes)).filter(({ spec }) => spec.clusterID === peer);
  const names = new Set(nodes.map(({ metadata }) => metadata.name));
  const there = names.size === 0 ? [] : (await kube.list(pods)).filter(({ spec }) => names.has(spec?.nodeName ?? ''));
  return {
    self,
    peer,
    slices: await slicesOf(side),
    pods: there.length,
    isProvider: (await kube.list(tenants, `${label.remoteClusterId}=${peer}`)).length > 0,
    isLinked: foreign.status?.modules.networking.enabled === true,
    remoteNamespace: foreign.status?.tenantNamespace?.remote,
  };
}

/** Nodes are emptied before anything that they need goes; rights of the peer go before what it had here. */
async function takeDown(io: CliIo, side: Side, timeoutMs: number, step: Step): Promise<void> {
  const { kube, peer } = side;
  const ofPeer = `${label.remoteClusterId}=${peer}`;
  const copies = `${label.replicated}=true,${label.originId}=${peer}`;
  const nodes = async (): Promise<KubeObject[]> =>
    (await kube.list(virtualNodes)).filter(({ spec }) => spec.clusterID === peer);
  const stages: readonly (readonly [ResourceType, () => Promise<readonly KubeObject[]>])[][] = [
    [
      [resourceSlices, () => slicesOf(side)],
      [virtualNodes, nodes],
      [tenants, () => kube.list(tenants, ofPeer)],
    ],
    [
      [resourceSlices, () => kube.list(resourceSlices, copies)],
      [namespaceMaps, () => kube.list(namespaceMaps, copies)],
    ],
    [[namespaces, () => tenantNamespaces(side)]],
  ];
  const deadline = io.clock.now() + timeoutMs;
  for (const stage of stages) {
    let left: KubeObject[] = [];
    await poll(
      io,
      deadline - io.clock.now(),
      async () => {
        left = [];
        for (const [type, list] of stage) {
          for (const object of await list()) {
            left.push(object);
            if (object.metadata.deletionTimestamp === undefined)
              await kube.delete(type, refOf(object), object.metadata.uid);
          }
        }
        step.update(left.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', '));
        return left.length === 0 ? true : undefined;
      },
      () => late(side, left),
    );
  }
  await poll(
    io,
    Math.max(10_000, deadline - io.clock.now()),
    async () => ((await foreignOf(side)) === undefined ? true : undefined),
    () => late(side, []),
  );
}

function late({ self, peer }: Side, left: readonly KubeObject[]): AppError {
  const names = left.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', ');
  return new AppError('deadline_exceeded', `${self} still has ${names || `a ForeignCluster ${peer}`}`, {
    detail: {
      remedy: 'does the agent run? Repeat the command: it goes on where it is; what holds an object is in its events',
    },
  });
}
