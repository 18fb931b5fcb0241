/** What the broker shows of both ends of a peering, where this command is logged in at one. */
import { askBroker, loginIfAny } from '#cli/broker/if-logged-in.ts';
import type { CliIo } from '#cli/output/io.ts';
import { findPeering } from '#cli/peerings/follow.ts';
import type { BrokerSaid } from './facts.ts';

/** Undefined: not logged in. */
export async function whatBrokerSays(
  io: CliIo,
  pair: BrokerSaid['pair'],
  withinMs: number,
): Promise<BrokerSaid | undefined> {
  const login = await loginIfAny(io);
  if (login === undefined) return undefined;
  const asked = await askBroker(io, login, withinMs, (broker) => findPeering(broker, ...pair));
  if (asked.failure !== undefined) return { url: asked.url, pair, failure: asked.failure, conditions: [] };
  const { url, value: peering } = asked;
  return { url, pair, ...(peering !== undefined && { phase: peering.phase }), conditions: peering?.conditions ?? [] };
}
