/** What a gateway pod does beside having its namespace programmed: compete for the active role and, while it has it, keep the link alive. */
import type { Cluster } from '#kube/model/types.ts';
import { abortScope, type LinkedAbort } from '#shared/async/abort-scope.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { TunnelControl } from '../kernel/wireguard.ts';
import { type AnnouncedRanges, mostAnnounced } from '../link/ping/message.ts';
import type { PingSocket } from '../link/ping/socket.ts';
import { candidateTexts, type Resolve } from '../link/tunnel/candidates.ts';
import { type LinkPorts, runLink, type TunnelSession } from '../link/tunnel/run.ts';
import { keepaliveSeconds } from '../objects/gateway-facts-of.ts';
import { configuredMtu, type GatewayPod, type Link } from '../objects/link-objects.ts';
import { comesInCrowds, type NodeAgentObjects } from '../objects/objects.ts';
import { createConnectionReporter } from './connection-reporter.ts';
import { electActiveGateway, type LinkName, lastKnownEndpoint, rememberEndpoint } from './gateway-election.ts';
import type { Implementation, LinkMetrics } from './link-metrics.ts';
import type { PathSizes } from './path-sizes.ts';

export interface GatewayRolesDeps {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly pings: PingSocket;
  readonly resolve: Resolve;
  readonly sizes: PathSizes;
  readonly objects: () => NodeAgentObjects;
  readonly onChange: (listener: (what: keyof NodeAgentObjects) => void) => () => void;
  readonly metrics?: LinkMetrics;
}

export interface GatewayContext {
  readonly pod: GatewayPod;
  readonly linkName: string;
  readonly tenant: string;
  readonly gatewayName: string;
  readonly role: Link['role'];
  /** As of now; undefined once the gateway object is gone. */
  readonly link: () => Link | undefined;
  readonly self: () => GatewayPod | undefined;
  readonly tunnel: TunnelControl;
  readonly implementation: Implementation;
  /** The port from which it dials; absent where peers dial it. */
  readonly source?: Omit<NonNullable<LinkPorts['source']>, 'random'>;
  /** Its namespace is programmed, or cannot be yet: the InternalFabric is made only for a link that has an active pod. */
  readonly isReady: () => boolean;
}

export interface GatewayRoles {
  /** Starts and stops what has to run as of now. */
  look(): void;
  /** Resolves after the signal has aborted and everything has ended; the Lease is free by then. */
  ended(): Promise<void>;
}

export function createGatewayRoles(deps: GatewayRolesDeps, place: GatewayContext, signal: AbortSignal): GatewayRoles {
  const { cluster, clock, log } = deps;
  const name: LinkName = { namespace: place.tenant, gatewayName: place.gatewayName, role: place.role };
  const replicas = {
    now: () => place.link()?.pods ?? [],
    onChange: (listener: () => void) =>
      deps.onChange((what) => {
        if (!comesInCrowds(what)) listener();
      }),
  };
  const competition = createActivity(signal, log, (until) =>
    electActiveGateway({ cluster, clock, log }, name, place.pod, replicas, until),
  );
  const linkKeeping = createActivity(signal, log, (until) => keepLink(deps, place, name, until));
  return {
    look() {
      const self = place.self();
      const link = place.link();
      const usable = place.isReady() && self !== undefined;
      competition.should(usable && !self.terminating);
      linkKeeping.should(usable && self.active && link?.publicKey !== undefined && link.fabric !== undefined);
    },
    async ended() {
      await Promise.all([competition.ended(), linkKeeping.ended()]);
    },
  };
}

/** Something that runs or not; asked to start while it still ends, it starts again after that. */
function createActivity(parent: AbortSignal, log: Log, work: (signal: AbortSignal) => Promise<void>) {
  let life: LinkedAbort | undefined;
  let running: Promise<void> | undefined;
  let wanted = false;
  function start(): void {
    const own = abortScope(parent);
    life = own;
    running = work(own.signal)
      .catch((error) => {
        if (!own.signal.aborted) log.error('a gateway activity failed', error);
      })
      .finally(() => {
        own.unlink();
        life = undefined;
        running = undefined;
        if (wanted && !parent.aborted) start();
      });
  }
  return {
    should(run: boolean): void {
      wanted = run;
      if (!run) life?.abort();
      else if (running === undefined && !parent.aborted) start();
    },
    async ended(): Promise<void> {
      await running;
    },
  };
}

/** While this pod is the active one. Afterwards the tunnel forgets the peer's endpoint: a standby sends nothing. */
async function keepLink(
  deps: GatewayRolesDeps,
  place: GatewayContext,
  name: LinkName,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, clock, log, pings, sizes } = deps;
  const { tunnel, linkName } = place;
  const peerKey = (): string | undefined => place.link()?.publicKey?.spec.publicKey;
  const overlay = (): string => place.link()?.fabric?.overlayAddress ?? '';
  const lastKnown = await lastKnownEndpoint(cluster.api, name, signal);
  const connection = { namespace: name.namespace, name: networkName.gateway(name.gatewayName) };
  const reporter = createConnectionReporter({ api: cluster.api, clock, log }, connection, signal);
  let remembered = lastKnown;
  let announced: AnnouncedRanges | undefined;
  const own = createAnnouncement(clock, () => place.link()?.configuration?.spec.local?.cidr);
  const unhear = pings.onPing((from, { ranges }) => {
    if (from === overlay() && ranges !== undefined) announced = ranges;
  });
  const metered = deps.metrics?.link(place.link()?.remoteClusterId ?? '', place.implementation);
  const ports: LinkPorts = {
    clock,
    preciseNow: () => performance.now(),
    log,
    resolve: deps.resolve,
    ping: (timeStamp, bytes) => {
      const clusterID = place.link()?.remoteClusterId ?? '';
      const ranges = bytes === undefined ? own.due() : undefined;
      pings.send(overlay(), { clusterID, msgType: 'PING', timeStamp, ...(ranges && { ranges }) }, bytes);
    },
    onPong: (listener) =>
      pings.onPong((from, message, bytes) => {
        if (from === overlay()) listener(message.timeStamp, bytes);
      }),
    look: () => sessionOf(tunnel, peerKey()),
    dial: async (endpoint) => {
      const publicKey = peerKey();
      if (publicKey !== undefined) await tunnel.shakeHands({ publicKey, endpoint, keepaliveSeconds });
    },
    isDialled: name.role === 'server',
    candidates: () => {
      const link = place.link();
      if (link === undefined) return [];
      return candidateTexts(link.gateway, link.role === 'client' ? link.gateway.spec.endpoint : undefined);
    },
    size: {
      configured: () => sizeNow(place, 'configured'),
      inEffect: () =>
        Math.min(sizeNow(place, 'effective'), sizes.now().found.get(linkName) ?? Number.POSITIVE_INFINITY),
      measuring: (on) => sizes.measuring(linkName, on, signal),
    },
    answered: (rttMs) => metered?.answered(rttMs),
    report: (report, session) => {
      metered?.report(report, session);
      sizes.found(linkName, report.mtu);
      reporter.report(report, announced);
      const { value, peerEndpoint } = report;
      if (value !== 'Connected' || peerEndpoint === undefined || peerEndpoint === remembered) return;
      remembered = peerEndpoint;
      rememberEndpoint(cluster.api, name, peerEndpoint, signal).catch((error) => {
        log.debug('the endpoint of the peer was not noted', { code: codeOf(error) });
      });
    },
    ...(place.source === undefined ? {} : { source: { ...place.source, random: Math.random } }),
    ...(lastKnown === undefined ? {} : { lastKnown }),
  };
  try {
    await runLink(ports, signal);
  } finally {
    unhear();
    metered?.end();
    sizes.found(linkName, undefined);
    await reporter.ended();
    // Not when this process ends, nor with the pod: the kernel goes on forwarding.
    const publicKey = peerKey();
    if (place.self()?.active === false && publicKey !== undefined)
      await tunnel
        .forget(publicKey)
        .catch((error) => log.debug('the endpoint of the peer was not forgotten', { code: codeOf(error) }));
  }
}

/** Not in each ping: an idle link says little. */
const announceMs = 3_000;

/** Announces the ranges of this cluster to the peer at intervals: only the peer can see that its Configuration says other ranges (docs/gitops.md). */
function createAnnouncement(clock: Clock, ranges: () => AnnouncedRanges | undefined) {
  let notBefore = 0;
  return {
    due(): AnnouncedRanges | undefined {
      const own = ranges();
      if (own === undefined || clock.now() < notBefore) return undefined;
      notBefore = clock.now() + announceMs;
      return Math.max(own.pod.length, own.external.length) <= mostAnnounced ? own : undefined;
    },
  };
}

function sizeNow(place: GatewayContext, which: 'configured' | 'effective'): number {
  const link = place.link();
  if (link === undefined) return 0;
  const configured = configuredMtu(link.gateway);
  return which === 'configured' ? configured : (link.fabric?.mtu ?? configured);
}

async function sessionOf(tunnel: TunnelControl, key: string | undefined): Promise<TunnelSession | undefined> {
  const peer = (await tunnel.read()).peers.find(({ publicKey }) => publicKey === key);
  if (peer === undefined) return undefined;
  const { endpoint, lastHandshakeMs, receivedBytes, sentBytes } = peer;
  return {
    receivedBytes,
    sentBytes,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(lastHandshakeMs === undefined ? {} : { handshakeAt: lastHandshakeMs }),
  };
}
