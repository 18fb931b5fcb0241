/**
 * Which endpoint of the peer to dial, and when to dial again. Evidence that the peer hears us is an answered ping, or a handshake; bytes that
 * arrive keep a link that was up from being given up. Pure: `dialStep` is called again and again with what was seen meanwhile.
 */

export const dialTiming = {
  /** Silence, beside two round trips, after which a link is dialled anew. */
  silenceMs: 1_500,
  /** How long, beside two round trips, the first attempts may take: a gateway that has just been replaced answers any moment. */
  attemptMs: 500,
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
  /** The peer answers pings; only then is their absence a sign. */
  readonly answersPings: boolean;
  readonly source: SourcePort;
  /** Since when all attempts from it have gone unanswered. */
  readonly sourceSince: number;
}

/** What was seen, as times; absent means never. */
export interface Sightings {
  readonly now: number;
  readonly pongAt?: number;
  readonly smoothRttMs?: number;
  /** When more bytes than before were found to have come in. */
  readonly receivedAt?: number;
  readonly handshakeAt?: number;
  /** From where the peer last sent. */
  readonly learned?: string;
  /** `address:port`, in order of preference, without repetitions. */
  readonly candidates: readonly string[];
  /** How long one source port is tried. Absent: ours must stay as it is, since the peer dials it. */
  readonly portMs?: number;
}

export interface DialStep {
  readonly state: DialState;
  /** First of all dial from this port. */
  readonly from?: SourcePort;
  /** Forget the session and start a handshake with this endpoint. */
  readonly dial?: string;
  /** When to ask again at the latest. */
  readonly lookAt: number;
}

/** A session that is there already (this process was restarted) is given the time to prove itself before it is touched. */
export function startDial(seen: Sightings, source: SourcePort = 'own'): DialStep {
  const start = { since: seen.now, attempts: 0, tried: [], source, sourceSince: seen.now } as const;
  if (
    seen.learned !== undefined &&
    seen.handshakeAt !== undefined &&
    seen.now - seen.handshakeAt < dialTiming.sessionMs
  ) {
    const state: DialState = { ...start, phase: 'up', endpoint: seen.learned, answersPings: true };
    return { state, lookAt: seen.now + dialTiming.silenceMs };
  }
  return attempt({ ...start, phase: 'dialling', answersPings: false }, seen);
}

export function dialStep(state: DialState, seen: Sightings): DialStep {
  return state.phase === 'up' ? whileUp(state, seen) : whileDialling(state, seen);
}

function whileUp(state: DialState, seen: Sightings): DialStep {
  const answersPings = state.answersPings || seen.pongAt !== undefined;
  const lastSign = Math.max(state.since, seen.pongAt ?? 0, seen.receivedAt ?? 0);
  const limitMs = answersPings ? silenceMs(seen) : dialTiming.sessionMs;
  const endpoint = seen.learned ?? state.endpoint;
  const next: DialState = { ...state, answersPings, ...(endpoint === undefined ? {} : { endpoint }) };
  if (seen.now - lastSign < limitMs) return { state: next, lookAt: lastSign + limitMs };
  return attempt({ ...next, phase: 'dialling', attempts: 0, tried: [], sourceSince: seen.now }, seen);
}

function whileDialling(state: DialState, seen: Sightings): DialStep {
  const answered = seen.pongAt !== undefined && seen.pongAt > state.since;
  const shaken = seen.handshakeAt !== undefined && seen.handshakeAt > state.since;
  if (answered || shaken) {
    const answersPings = state.answersPings || answered;
    return whileUp({ ...state, phase: 'up', since: seen.now, attempts: 0, tried: [], answersPings }, seen);
  }
  const fresh = choices(seen).some((endpoint) => !state.tried.includes(endpoint)) && state.endpoint === undefined;
  const endsAt = state.since + attemptMs(state, seen);
  return fresh || seen.now >= endsAt ? attempt(state, seen) : { state, lookAt: endsAt };
}

function attempt(state: DialState, seen: Sightings): DialStep {
  const all = choices(seen, state.endpoint);
  const untried = all.filter((endpoint) => !state.tried.includes(endpoint));
  const [dial] = untried.length > 0 ? untried : all;
  const { endpoint: _, ...rest } = state;
  const from = dial !== undefined && untried.length === 0 ? nextSource(state, seen) : undefined;
  const next: DialState = {
    ...rest,
    since: seen.now,
    attempts: state.attempts + 1,
    tried: dial === undefined ? [] : untried.length > 0 ? [...state.tried, dial] : [dial],
    ...(dial === undefined ? {} : { endpoint: dial }),
    ...(from === undefined ? {} : { source: from, sourceSince: seen.now }),
  };
  const lookAt = seen.now + attemptMs(next, seen);
  if (dial === undefined) return { state: next, lookAt };
  return { state: next, dial, lookAt, ...(from === undefined ? {} : { from }) };
}

/**
 * Whatever remembers flows on the way (a NAT box, a node whose NodePort led nowhere yet when the first packet came) may go on for ever with
 * what it decided on the first packet, since our attempts keep that memory fresh: another port is another flow. Back again after a while, as
 * a peer behind a NAT box of its own lets in only the port that it knows.
 */
function nextSource({ source, sourceSince }: DialState, { now, portMs }: Sightings): SourcePort | undefined {
  if (portMs === undefined || now - sourceSince < portMs) return undefined;
  return source === 'own' ? 'another' : 'own';
}

/** First where the peer was heard last, then what it says of itself. */
const choices = ({ learned, candidates }: Sightings, current?: string): readonly string[] => [
  ...new Set([...(learned === undefined ? [] : [learned]), ...candidates, ...(current === undefined ? [] : [current])]),
];

const silenceMs = ({ smoothRttMs = 0 }: Sightings): number => dialTiming.silenceMs + 2 * smoothRttMs;

/** Longer and longer, so that a peer whose answer takes more than the first attempts is reached, too. */
function attemptMs({ attempts }: DialState, seen: Sightings): number {
  const rounds = Math.ceil(Math.max(0, attempts - dialTiming.quickAttempts) / Math.max(1, choices(seen).length));
  const shortest = dialTiming.attemptMs + 2 * (seen.smoothRttMs ?? 0);
  return Math.min(dialTiming.longestAttemptMs, shortest * dialTiming.patience ** Math.min(rounds, 10));
}
