/** What `--wait -o json` prints: one line of JSON for each change of a peering that is waited for. */
import type { CliIo } from '#cli/output/io.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Peering, PeeringCondition } from '#shared/schema/api/resources.ts';

interface WaitEvent {
  /** ISO 8601. */
  readonly at: string;
  /** `waiting` any number of times, then one of the others. */
  readonly event: 'waiting' | 'done' | 'failed';
  readonly peering: string;
  readonly consumer: string;
  readonly provider: string;
  readonly phase: Peering['phase'];
  readonly waitingFor: string;
  readonly missing: readonly Pick<PeeringCondition, 'type' | 'side' | 'reason' | 'message' | 'action'>[];
  /** Of `failed`. */
  readonly code?: ErrorCode;
  readonly message?: string;
}

export interface WaitEvents {
  /** The same state twice is printed once. */
  waiting(peering: Peering): void;
  done(peering: Peering): void;
  /** The error itself goes to stderr, as ever. */
  failed(error: unknown): void;
}

type State = Omit<WaitEvent, 'at' | 'event'>;

const stateOf = ({ id, consumer, provider, phase, waitingFor, conditions }: Peering): State => ({
  peering: id,
  consumer,
  provider,
  phase,
  waitingFor,
  missing: conditions
    .filter(({ status }) => status !== 'True')
    .map(({ type, side, reason, message, action }) => ({ type, side, reason, message, action })),
});

export function createWaitEvents(io: Pick<CliIo, 'stdout' | 'clock'>, start: Peering): WaitEvents {
  let last = stateOf(start);
  let printed = '';
  const print = (event: WaitEvent['event'], state: State): void => {
    const { peering, consumer, provider, ...rest } = state;
    const head = { at: new Date(io.clock.now()).toISOString(), event, peering, consumer, provider };
    io.stdout.write(`${JSON.stringify({ ...head, ...rest } satisfies WaitEvent)}\n`);
  };
  return {
    waiting(peering) {
      last = stateOf(peering);
      const text = JSON.stringify(last);
      if (text !== printed) print('waiting', last);
      printed = text;
    },
    done: (peering) => print('done', stateOf(peering)),
    failed(error) {
      const code = codeOf(error);
      print('failed', { ...last, ...(code !== undefined && { code }), message: messageOf(error) });
    },
  };
}
