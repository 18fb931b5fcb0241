/** Watching a peering from outside: by long polls, through restarts of the broker, until it is where it should be. */
import type { BrokerClient } from '#cli/broker/broker-client.ts';
import { elapsed } from '#cli/output/duration.ts';
import type { CliIo } from '#cli/output/io.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Peering } from '#shared/schema/api/resources.ts';

/** Below the broker's own limit, with room for slow lines. */
const longestPollSeconds = 20;

export const arrow = ({ consumer, provider }: Pick<Peering, 'consumer' | 'provider'>): string =>
  `${consumer} -> ${provider}`;

/** Undefined when the pair is not peered, nor was within the last day. */
export async function findPeering(
  broker: BrokerClient,
  consumer: string,
  provider: string,
): Promise<Peering | undefined> {
  const { items } = await broker.api.listPeerings({ query: { consumer, provider } });
  return items[0];
}

export async function mustFindPeering(broker: BrokerClient, consumer: string, provider: string): Promise<Peering> {
  const found = await findPeering(broker, consumer, provider);
  if (found) return found;
  throw new AppError('not_found', `${consumer} is not peered with ${provider} as its provider`, {
    detail: { remedy: 'list peerings with `isthmus get peerings`; the order is CONSUMER PROVIDER' },
  });
}

export interface Following {
  readonly done: (peering: Peering) => boolean;
  readonly timeoutMs: number;
  /** Called with each state that is news. */
  readonly onNews: (peering: Peering) => void;
}

/** Fails with `deadline_exceeded`, saying what was being waited for. */
export async function followPeering(
  io: CliIo,
  broker: BrokerClient,
  start: Peering,
  { done, timeoutMs, onNews }: Following,
): Promise<Peering> {
  const deadline = io.clock.now() + timeoutMs;
  let peering = start;
  let silence: unknown;
  for (;;) {
    if (silence === undefined) onNews(peering);
    if (done(peering)) return peering;
    const left = deadline - io.clock.now();
    if (left <= 0) throw tooLate(peering, timeoutMs, silence);
    const wait = Math.min(longestPollSeconds, Math.ceil(left / 1_000));
    try {
      const news = await broker.api.getPeering(
        { path: { peering: peering.id }, query: { wait } },
        { headers: { 'if-none-match': `"${peering.version}"` }, timeoutMs: (wait + 10) * 1_000 },
      );
      peering = news ?? peering;
      silence = undefined;
    } catch (error) {
      // A broker that is away now may be back before the deadline; the peering goes on by itself.
      if (codeOf(error) !== 'broker_unreachable') throw error;
      silence = error;
    }
  }
}

function tooLate(peering: Peering, timeoutMs: number, silence: unknown): AppError {
  if (silence instanceof AppError) return silence;
  return new AppError(
    'deadline_exceeded',
    `after ${elapsed(timeoutMs)} the peering ${arrow(peering)} is ${peering.phase}: ${peering.waitingFor}`,
    {
      detail: {
        peering: peering.id,
        phase: peering.phase,
        remedy: `see \`isthmus describe peering ${peering.consumer} ${peering.provider}\`; it goes on without this command`,
      },
    },
  );
}
