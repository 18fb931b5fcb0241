/** How often the agent speaks to its broker: what the broker said last, or what brokers before version 2 need to hear. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Intervals, oldestProtocolVersion, protocolVersion } from '#shared/schema/protocol/agent-protocol.ts';

/** Brokers of version 1 call an agent offline after 90 s, and answer every ping. */
const ofFirstVersion: Intervals = { heartbeatSeconds: 25, pollSeconds: 30 };
/** Every so many heartbeats one asks for an answer: a connection that is dead without TCP noticing must not last. Answers have a price. */
const answerEvery = 8;

interface Announced {
  readonly heartbeatSeconds?: number | undefined;
  readonly pollSeconds?: number | undefined;
  readonly protocolVersion?: number | undefined;
}

export interface AgentIntervals {
  /** Takes over what an answer or a frame says; what it leaves out stays. Fails with `protocol_unsupported`. */
  adopt(by: Announced): void;
  /** Between two pings on an open doorbell. */
  heartbeatMs(): number;
  /** Between two exchanges without one. */
  pollMs(): number;
  /** A ping is enough to be heard of, and says whether there is news. */
  readonly pingsSuffice: boolean;
  /** Calls back when one of the two became another; returns how to stop that. */
  changed(listener: () => void): () => void;
  /** Whether ping number `n` of a connection asks for an answer. */
  wantsAnswer(n: number): boolean;
}

export function createIntervals(): AgentIntervals {
  const listeners = new Set<() => void>();
  let version = 1;
  let intervals = ofFirstVersion;
  return {
    adopt(by) {
      const { protocolVersion: theirs = version } = by;
      if (theirs < oldestProtocolVersion) throw tooOld(theirs);
      version = theirs;
      const { heartbeatSeconds = intervals.heartbeatSeconds, pollSeconds = intervals.pollSeconds } =
        version < 2 ? ofFirstVersion : by;
      const changed = heartbeatSeconds !== intervals.heartbeatSeconds || pollSeconds !== intervals.pollSeconds;
      intervals = { heartbeatSeconds, pollSeconds };
      if (changed) for (const listener of [...listeners]) listener();
    },
    heartbeatMs: () => intervals.heartbeatSeconds * 1_000,
    pollMs: () => intervals.pollSeconds * 1_000,
    get pingsSuffice() {
      return version >= 2;
    },
    changed(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    wantsAnswer: (n) => version < 2 || n % answerEvery === 0,
  };
}

const tooOld = (theirs: number): AppError =>
  new AppError(
    'protocol_unsupported',
    `the broker speaks protocol version ${theirs}, this agent ${oldestProtocolVersion} to ${protocolVersion}; upgrade the broker`,
    { detail: { field: 'protocolVersion', value: theirs } },
  );
