/** Keeps one link alive: pings through the tunnel, dials the peer's candidates while it is silent, measures the path, and reports. */
import { abortScope } from '#shared/async/abort-scope.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import {
  type LinkValue,
  linkValue,
  nextPingAt,
  type PingState,
  packetLoss,
  pingSent,
  pongReceived,
  startPings,
} from '../ping/decide.ts';
import { timeStampOf } from '../ping/message.ts';
import { type Resolve, resolveCandidates } from './candidates.ts';
import {
  type DialState,
  type DialStep,
  dialStep,
  dialTiming,
  type LinkEvidence,
  type SourcePort,
  startDial,
} from './decide.ts';
import { createPathMeter, type PathSize } from './path-meter.ts';

export interface TunnelSession {
  readonly endpoint?: string;
  readonly handshakeAt?: number;
  readonly receivedBytes: number;
  readonly sentBytes?: number;
}

export interface LinkReport {
  readonly value: LinkValue;
  readonly rttMs?: number;
  /** Percent. */
  readonly packetLoss?: number;
  /** `address:port` from which the peer sends. */
  readonly peerEndpoint?: string;
  readonly handshakeAt?: number;
  /** What the path lets through; absent until it was measured. */
  readonly mtu?: number;
  /** By the device, as it was last seen. */
  readonly receivedBytes?: number;
  readonly sentBytes?: number;
}

export interface LinkPorts {
  readonly clock: Clock;
  /** Milliseconds with a fraction, from any beginning: for round trips below one. Absent: the clock's. */
  readonly preciseNow?: () => number;
  readonly log: Log;
  readonly resolve: Resolve;
  /** Sends one ping to the peer; `bytes` pads the datagram. */
  readonly ping: (timeStamp: string, bytes?: number) => void;
  /** Tells of each answer; returns what ends that. */
  readonly onPong: (listener: (timeStamp: string, bytes: number) => void) => () => void;
  /** Undefined while there is no device or no peer. */
  readonly look: () => Promise<TunnelSession | undefined>;
  /** Starts a handshake with this endpoint; what the peer sends by a session that there is goes on arriving. */
  readonly dial: (endpoint: string) => Promise<void>;
  /** The peer dials us, rather than we the peer. */
  readonly isDialled?: boolean;
  /** The UDP port from which we dial; absent where the peer dials it, so that it must stay. */
  readonly source?: {
    readonly now: () => SourcePort;
    readonly move: (to: SourcePort) => Promise<void>;
    /** From 0 up to 1. */
    readonly random: () => number;
  };
  /** `host:port` texts as of now. */
  readonly candidates: () => readonly string[];
  /** Sizes of packets in the tunnel. */
  readonly size: PathSize;
  /** `session`: as the tunnel was last seen. */
  readonly report: (report: LinkReport, session: TunnelSession | undefined) => void;
  /** Told of the round trip of each ping that was answered. */
  readonly answered?: (rttMs: number) => void;
  /** Where the former active replica heard the peer. */
  readonly lastKnown?: string;
}

/** While the link is quiet and well it is looked at no more often than this. */
const calmLookMs = 5_000;
const eagerLookMs = 250;
const resolveCalmMs = 30_000;
const resolveEagerMs = 1_000;
/** More than the 20 ms within which a peer, with wireguard-go as with Linux, ignores a second handshake. */
const handshakeGapMs = 50;
/** Abort reason without a stack, since no code reads it. */
const woken = Object.freeze({ name: 'AbortError' });

/** Returns when the signal aborts. */
export async function runLink(ports: LinkPorts, signal: AbortSignal): Promise<void> {
  const { clock, log, preciseNow = clock.now.bind(clock) } = ports;
  let pings: PingState = startPings(clock.now());
  let serial = 0;
  let nap = abortScope(signal);
  const nextTimeStamp = (): string => timeStampOf(clock.now(), serial++);
  const names = createNames(ports);
  const meter = createPathMeter(
    {
      ...ports,
      nextTimeStamp,
      isAlive: () => linkValue(pings, clock.now()) === 'Connected' && pings.pending.length < 2,
    },
    signal,
  );
  const unsubscribe = ports.onPong((timeStamp, bytes) => {
    const next = pongReceived(pings, timeStamp, clock.now(), preciseNow());
    const isAnswer = next !== pings;
    pings = next;
    if (isAnswer && next.rttMs !== undefined) ports.answered?.(next.rttMs);
    meter.answered(timeStamp, bytes);
    // With the last answer the next ping is not due for long: there is no need to wake for the hurry in between.
    if ((isAnswer && pings.pending.length === 0) || dial?.phase === 'dialling') nap.abort(woken);
  });
  let dial: DialState | undefined;
  const portMsByChance = (): number => dialTiming.portMs + dialTiming.portJitterMs * (ports.source?.random() ?? 0);
  let portMs = portMsByChance();
  const session = createSessionView(ports);
  try {
    while (!signal.aborted) {
      if (clock.now() >= nextPingAt(pings)) {
        const timeStamp = nextTimeStamp();
        ports.ping(timeStamp);
        pings = pingSent(pings, timeStamp, clock.now(), preciseNow());
      }
      const silent = dial?.phase !== 'up' || pings.pending.length > 1;
      await session.refresh(silent ? eagerLookMs : calmLookMs);
      const candidates = names.current(silent ? resolveEagerMs : resolveCalmMs);
      const evidence = (): LinkEvidence => ({
        ...session.evidence(dial, pings, candidates, ports.lastKnown),
        ...(ports.isDialled === undefined ? {} : { isDialled: ports.isDialled }),
        ...(ports.source === undefined ? {} : { portMs }),
      });
      const look = (): DialStep => {
        const seen = evidence();
        return dial === undefined ? startDial(seen, ports.source?.now()) : dialStep(dial, seen);
      };
      let step = look();
      if (step.dial !== undefined) {
        // What arrived since the last look may be the peer's handshake.
        await session.refresh(0);
        step = look();
      }
      if (step.state.phase !== dial?.phase)
        log.info('link state', { phase: step.state.phase, endpoint: step.state.endpoint });
      if (step.state.since !== dial?.since) session.attempted();
      dial = step.state;
      let to = step.dial;
      if (step.from !== undefined) {
        portMs = portMsByChance();
        log.info('the peer does not answer; dialling from another port', { port: step.from });
        await ports.source?.move(step.from).catch((error) => log.warn('the port stays', { code: codeOf(error) }));
        // WireGuard shakes hands by itself when its port changes: at once another would end that session, and the peer would ignore it.
        await clock.sleep(handshakeGapMs, signal).catch(() => undefined);
        await session.refresh(0);
        const { handshakeAt = 0 } = evidence();
        if (handshakeAt > dial.since || signal.aborted) to = undefined;
      }
      if (to !== undefined) {
        log.info('dialling', { endpoint: to, attempt: dial.attempts });
        await ports.dial(to).catch((error) => log.warn('could not dial', { code: codeOf(error) }));
        // WireGuard keeps it until there is a session, so that the answer is the first thing that arrives by it.
        pings = { ...pings, sentAt: clock.now() - eagerLookMs };
      }
      if (dial.phase === 'up' && pings.answeredAt !== undefined) meter.check(pings.smoothRttMs ?? 0);
      ports.report(reportOf(pings, session.last(), meter.mtu(), clock.now()), session.last());
      const pingAt = nextPingAt(pings);
      const until = Math.min(pingAt, step.lookAt, clock.now() + (silent ? eagerLookMs : calmLookMs));
      await clock.sleep(Math.max(1, until - clock.now()), nap.signal).catch(() => undefined);
      nap.unlink();
      nap = abortScope(signal);
    }
  } finally {
    unsubscribe();
    nap.unlink();
  }
}

function reportOf(
  pings: PingState,
  session: TunnelSession | undefined,
  mtu: number | undefined,
  now: number,
): LinkReport {
  const value = linkValue(pings, now);
  const loss = packetLoss(pings);
  return {
    value,
    ...(value === 'Connected' && pings.rttMs !== undefined ? { rttMs: pings.rttMs } : {}),
    ...(loss === undefined ? {} : { packetLoss: loss }),
    ...(value !== 'Connected' || session?.endpoint === undefined ? {} : { peerEndpoint: session.endpoint }),
    ...(session?.handshakeAt === undefined ? {} : { handshakeAt: session.handshakeAt }),
    ...(mtu === undefined ? {} : { mtu }),
    ...(session === undefined ? {} : { receivedBytes: session.receivedBytes }),
    ...(session?.sentBytes === undefined ? {} : { sentBytes: session.sentBytes }),
  };
}

/** What the device says, read no more often than needed, and when its byte count and its last handshake were last seen to change. */
function createSessionView({ clock, look, log }: LinkPorts) {
  let last: TunnelSession | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let receivedAt: number | undefined;
  let shakenAt: number | undefined;
  let outdated = false;
  return {
    last: () => last,
    /** From now on only what is newer counts: the device's own time of a handshake may be as coarse as a second. */
    attempted(): void {
      shakenAt = undefined;
      outdated = true;
    },
    async refresh(everyMs: number): Promise<void> {
      if (!outdated && clock.now() - lookedAt < everyMs) return;
      outdated = false;
      try {
        const found = await look();
        const since = lookedAt;
        lookedAt = clock.now();
        if (found !== undefined && last !== undefined) {
          if (found.receivedBytes > last.receivedBytes && lookedAt - since <= 2 * eagerLookMs) receivedAt = lookedAt;
          if (found.handshakeAt !== undefined && found.handshakeAt !== last.handshakeAt) shakenAt = lookedAt;
        }
        last = found;
      } catch (error) {
        last = undefined;
        lookedAt = clock.now();
        log.debug('could not look at the tunnel', { code: codeOf(error) });
      }
    },
    evidence(
      dial: DialState | undefined,
      pings: PingState,
      candidates: readonly string[],
      lastKnown?: string,
    ): LinkEvidence {
      const learned = last?.endpoint ?? (dial === undefined ? lastKnown : undefined);
      const former = last?.handshakeAt;
      const handshakeAt =
        shakenAt ?? (former === undefined || dial === undefined ? former : Math.min(former, dial.since));
      return {
        now: clock.now(),
        candidates,
        ...(pings.answeredAt === undefined ? {} : { pongAt: pings.answeredAt }),
        ...(pings.smoothRttMs === undefined ? {} : { smoothRttMs: pings.smoothRttMs }),
        ...(receivedAt === undefined ? {} : { receivedAt }),
        ...(handshakeAt === undefined ? {} : { handshakeAt }),
        ...(learned === undefined ? {} : { learned }),
      };
    },
  };
}

/** Names are resolved beside the pings, never in their way; the last answer counts until there is a new one. */
function createNames({ clock, candidates, resolve }: LinkPorts) {
  let texts: readonly string[] = [];
  let addresses: readonly string[] = [];
  let askedAt = Number.NEGATIVE_INFINITY;
  let asking = false;
  const literal = (text: string): boolean => /^[\d.]+:\d+$/.test(text);
  return {
    current(everyMs: number): readonly string[] {
      const now = candidates();
      const changed = JSON.stringify(now) !== JSON.stringify(texts);
      texts = now;
      if (now.every(literal)) {
        addresses = now;
      } else if (!asking && (changed || clock.now() - askedAt >= everyMs)) {
        asking = true;
        askedAt = clock.now();
        void resolveCandidates(now, resolve)
          .then((found) => {
            if (found.length > 0) addresses = found;
          })
          .finally(() => {
            asking = false;
          });
      }
      return addresses;
    },
  };
}
