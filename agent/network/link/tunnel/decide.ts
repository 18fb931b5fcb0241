/**
 * Which endpoint of the peer to dial, and when to dial again. Evidence that the peer hears us is an answered ping; handshakes alone are one
 * only of a peer that lets several go by without answering a ping. What arrives from the peer, a handshake or bytes of one, prolongs an
 * attempt. Pure: `dialStep` is called again and again with what was seen meanwhile.
 */

export const dialTiming = {
  /** Silence, in addition to two round trips, after which a link is dialled again. */
  silenceMs: 1_500,
  /** How long, beside two round trips, the first attempts may take: a gateway that has just been replaced answers any moment. */
  attemptMs: 500,
  /** How long, beside two round trips, a peer that was heard may take to answer a ping before it is dialled again. */
  proofMs: 750,
  /**
   * The side that is dialled waits so much longer: two handshakes that cross leave neither side a session. It has to exceed a round trip and
   * the time between two looks, or the next two cross as well.
   */
  yieldMs: 1_000,
  /** A peer that made this many handshakes and never answered a ping is one that answers none. */
  muteAfter: 3,
  /** Bytes keep a link up for so long without a pong of a peer that answers pings. */
  bytesMs: 5_000,
  /** How many attempts are that short. */
  quickAttempts: 6,
  /** Later ones get longer by this factor after each round through all candidates… */
  patience: 1.5,
  /** …but not longer than WireGuard itself waits before it repeats a handshake. */
  longestAttemptMs: 5_000,
  /** How long all attempts go unanswered, at least, before they come from another UDP port of ours… */
  portMs: 15_000,
  /** …and so much longer at most, by chance. */
  portJitterMs: 3_000,
  /** A peer that answers no pings counts as alive while its session is younger than WireGuard lets one be. */
  sessionMs: 180_000,
} as const;

/** UDP port from which we dial: the one that the peer knows, or any other. */
export type SourcePort = 'own' | 'another';

export interface DialState {
  readonly phase: 'dialling' | 'up';
  /** Since when. */
  readonly since: number;
  /** Endpoint in use. Absent: we only wait for the peer to dial. */
  readonly endpoint?: string;
  /** Attempts since the link was up last. */
  readonly attempts: number;
  /** Where the last attempt stands in the list, so that a changed list goes on from there. */
  readonly tried: readonly string[];
  /** Whether the peer answers pings. Absent: not known yet. */
  readonly answersPings?: boolean;
  /** Attempts, since the link was up last, in which a handshake was made and no ping answered. */
  readonly unproven: number;
  readonly source: SourcePort;
  /** Since when all attempts from it have gone unanswered. */
  readonly sourceSince: number;
}

/** What was seen, as times; absent means never. */
export interface LinkEvidence {
  readonly now: number;
  readonly pongAt?: number;
  readonly smoothRttMs?: number;
  /** When more bytes than before were found to have come in. */
  readonly receivedAt?: number;
  /** When the last handshake was made. */
  readonly handshakeAt?: number;
  /** From where the peer last sent. */
  readonly learned?: string;
  /** `address:port`, in order of preference, without repetitions. */
  readonly candidates: readonly string[];
  /** How long one source port is tried. Absent: ours must stay as it is, since the peer dials it. */
  readonly portMs?: number;
  /** The peer dials us, rather than we the peer. */
  readonly isDialled?: boolean;
}

export interface DialStep {
  readonly state: DialState;
  /** First of all dial from this port. */
  readonly from?: SourcePort;
  /** Start a handshake with this endpoint. */
  readonly dial?: string;
  /** When to ask again at the latest. */
  readonly lookAt: number;
}

/** A session that is there already (this process was restarted) is given the time to prove itself before it is touched. */
export function startDial(seen: LinkEvidence, source: SourcePort = 'own'): DialStep {
  const start = { since: seen.now, attempts: 0, tried: [], unproven: 0, source, sourceSince: seen.now } as const;
  if (
    seen.learned !== undefined &&
    seen.handshakeAt !== undefined &&
    seen.now - seen.handshakeAt < dialTiming.sessionMs
  ) {
    const state: DialState = { ...start, phase: 'up', endpoint: seen.learned };
    return { state, lookAt: seen.now + dialTiming.silenceMs };
  }
  return attempt({ ...start, phase: 'dialling' }, seen);
}

export function dialStep(state: DialState, seen: LinkEvidence): DialStep {
  return state.phase === 'up' ? whileUp(state, seen) : whileDialling(state, seen);
}

function whileUp(state: DialState, seen: LinkEvidence): DialStep {
  const answersPings = seen.pongAt === undefined ? state.answersPings : true;
  const pongAt = Math.max(state.since, seen.pongAt ?? 0);
  const mute = answersPings === false;
  const receivedAt = Math.min(seen.receivedAt ?? 0, mute ? Number.POSITIVE_INFINITY : pongAt + dialTiming.bytesMs);
  const lastSign = Math.max(pongAt, receivedAt);
  const limitMs = mute ? dialTiming.sessionMs : silenceMs(seen);
  const endpoint = seen.learned ?? state.endpoint;
  const next: DialState = {
    ...state,
    ...(answersPings === undefined ? {} : { answersPings }),
    ...(endpoint === undefined ? {} : { endpoint }),
  };
  if (seen.now - lastSign < limitMs) return { state: next, lookAt: lastSign + limitMs };
  const silent = { phase: 'dialling', attempts: 0, tried: [], unproven: 0, sourceSince: seen.now } as const;
  return attempt({ ...next, ...silent }, seen);
}

function whileDialling(state: DialState, seen: LinkEvidence): DialStep {
  const isUp = (answersPings: boolean): DialStep =>
    whileUp({ ...state, phase: 'up', since: seen.now, attempts: 0, tried: [], unproven: 0, answersPings }, seen);
  if (isAfter(seen.pongAt, state)) return isUp(true);
  const shaken = isAfter(seen.handshakeAt, state);
  if (shaken && state.answersPings === false) return isUp(false);
  const endsAt = attemptEndsAt(state, seen);
  const fresh = state.endpoint === undefined && choices(seen).some((endpoint) => !state.tried.includes(endpoint));
  const heard = shaken || isAfter(seen.receivedAt, state);
  if (seen.now < endsAt && (heard || !fresh)) return { state, lookAt: endsAt };
  const unproven = state.unproven + (shaken ? 1 : 0);
  if (unproven >= dialTiming.muteAfter && state.answersPings === undefined) return isUp(false);
  return attempt({ ...state, unproven }, seen);
}

const isAfter = (at: number | undefined, { since }: DialState): boolean => at !== undefined && at > since;

/** Later when the peer was heard meanwhile: a handshake in progress is not interrupted at once, nor awaited without limit. */
function attemptEndsAt(state: DialState, seen: LinkEvidence): number {
  const endsAt = state.since + attemptMs(state, seen);
  const signs = [seen.handshakeAt, seen.receivedAt].filter((at) => at !== undefined && isAfter(at, state));
  if (signs.length === 0) return endsAt;
  const proofMs = dialTiming.proofMs + 2 * (seen.smoothRttMs ?? 0) + (seen.isDialled === true ? dialTiming.yieldMs : 0);
  return Math.min(Math.max(endsAt, Math.max(...signs.map(Number)) + proofMs), endsAt + 2 * proofMs);
}

function attempt(state: DialState, seen: LinkEvidence): DialStep {
  const all = choices(seen, state.endpoint);
  const untried = all.filter((endpoint) => !state.tried.includes(endpoint));
  // A peer that was heard is answered there first; one that shook hands is asked there again before others are tried.
  const shaken = isAfter(seen.handshakeAt, state);
  const again = shaken && state.unproven % dialTiming.muteAfter !== 0;
  const roamed = (shaken || isAfter(seen.receivedAt, state)) && seen.learned !== state.endpoint;
  const answered = again || roamed ? seen.learned : undefined;
  const dial = answered ?? untried[0] ?? all[0];
  const isRound = untried.length === 0;
  const { endpoint: _, ...rest } = state;
  const from = dial !== undefined && isRound ? nextSource(state, seen) : undefined;
  const next: DialState = {
    ...rest,
    since: seen.now,
    attempts: state.attempts + 1,
    tried: dial === undefined ? [] : isRound ? [dial] : [...state.tried, dial],
    ...(dial === undefined ? {} : { endpoint: dial }),
    ...(from === undefined ? {} : { source: from, sourceSince: seen.now }),
  };
  const lookAt = seen.now + attemptMs(next, seen);
  if (dial === undefined) return { state: next, lookAt };
  return { state: next, dial, lookAt, ...(from === undefined ? {} : { from }) };
}

/**
 * A middlebox (NAT, or a node whose NodePort led nowhere when the first packet came) may keep its decision on the first packet for ever, since our
 * attempts keep its flow entry alive. Another source port is another flow. The usual port is tried again after a while, since a peer behind a NAT of
 * its own may admit only the port that it knows.
 */
function nextSource({ source, sourceSince }: DialState, { now, portMs }: LinkEvidence): SourcePort | undefined {
  if (portMs === undefined || now - sourceSince < portMs) return undefined;
  return source === 'own' ? 'another' : 'own';
}

/** First where the peer was heard last, then what it says of itself. */
const choices = ({ learned, candidates }: LinkEvidence, current?: string): readonly string[] => [
  ...new Set([...(learned === undefined ? [] : [learned]), ...candidates, ...(current === undefined ? [] : [current])]),
];

const silenceMs = ({ smoothRttMs = 0 }: LinkEvidence): number => dialTiming.silenceMs + 2 * smoothRttMs;

/** Longer and longer, so that a peer whose answer takes more than the first attempts is reached, too. */
function attemptMs({ attempts }: DialState, seen: LinkEvidence): number {
  const rounds = Math.ceil(Math.max(0, attempts - dialTiming.quickAttempts) / Math.max(1, choices(seen).length));
  const shortest = dialTiming.attemptMs + 2 * (seen.smoothRttMs ?? 0);
  return Math.min(dialTiming.longestAttemptMs, shortest * dialTiming.patience ** Math.min(rounds, 10));
}
