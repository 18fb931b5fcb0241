/** What `isthmus status` prints: once, or again whenever it changes. */
import { askBroker, loginIfAny } from '#cli/broker/if-logged-in.ts';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { retryReads } from '#cli/cluster/retry.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printObject } from '#cli/output/print.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { endsOf } from './both-ends.ts';
import { readObjects } from './read.ts';
import { type ClusterStatus, summarize, withEnds } from './summary.ts';
import { statusText } from './text.ts';

export interface StatusOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly watch?: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

const everyMs = 2_000;
/** The broker counts requests: while watching, it is asked less often than the cluster. */
const brokerEveryMs = 10_000;
const brokerWithinMs = 5_000;

/** `peer`: only of this one. With `watch`, until `io` is aborted. */
export async function showStatus(io: CliIo, peer: string | undefined, options: StatusOptions): Promise<void> {
  const kube = retryReads(io, await openCluster(options, io));
  const ends = endsFrom(io, peer);
  let last = '';
  do {
    const status = await ends(await look(kube, peer));
    const text = JSON.stringify(status);
    if (text !== last) print(io, options, status);
    last = text;
    if (options.watch) await io.clock.sleep(everyMs, io.signal);
  } while (options.watch);
}

function print(io: CliIo, { output, watch }: StatusOptions, status: ClusterStatus): void {
  if (output === 'text')
    io.stdout.write(`${watch ? `${new Date(io.clock.now()).toISOString()}\n` : ''}${statusText(status)}`);
  else printObject(io, output, status);
}

type Said = Parameters<typeof withEnds>[1];

/** Adds what the broker says, when this command is logged in at the broker that the cluster has joined. */
function endsFrom(io: CliIo, peer: string | undefined): (status: ClusterStatus) => Promise<ClusterStatus> {
  let said: Said | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  return async (status) => {
    if (status.broker === undefined) return status;
    if (io.clock.now() - askedAt >= brokerEveryMs) {
      said = await ask(io, status.broker.url, status.clusterId, peer);
      askedAt = io.clock.now();
    }
    return said === undefined ? status : withEnds(status, said);
  };
}

const sameOrigin = (a: string, b: string): boolean =>
  URL.canParse(a) && URL.canParse(b) && new URL(a).origin === new URL(b).origin;

async function ask(io: CliIo, url: string, cluster: string, peer: string | undefined): Promise<Said> {
  const login = await loginIfAny(io);
  if (login === undefined) return { none: `for the other, log in: isthmus login ${url}` };
  if (!sameOrigin(login.url, url))
    return { none: `this command is logged in at ${login.url}, the cluster's broker is ${url}` };
  const asked = await askBroker(io, login, brokerWithinMs, (broker) =>
    broker.all((page) => broker.api.listPeerings({ query: { ...page, cluster } })),
  );
  if (asked.failure !== undefined) return { none: `the broker does not tell of the other: ${asked.failure}` };
  return { ends: endsOf(asked.value, cluster, peer) };
}

async function look(kube: KubeClient, peer: string | undefined): Promise<ClusterStatus> {
  const objects = await readObjects(kube);
  const status = summarize(objects, peer);
  if (status === undefined) {
    throw new AppError('not_found', `Isthmus is not installed in the cluster at ${kube.server}`, {
      detail: { remedy: 'install it with `isthmus install` or `isthmus join`' },
    });
  }
  if (peer !== undefined && status.peers.length === 0) {
    const known = objects.peers.map(({ spec }) => spec.clusterID).join(', ') || 'none';
    throw new AppError('not_found', `${status.clusterId} has no peer ${JSON.stringify(peer)}, there is: ${known}`, {
      detail: { field: 'peer', value: peer },
    });
  }
  return status;
}
