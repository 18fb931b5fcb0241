/** What the broker shows of both ends of a peering, where this command is logged in at one. */
import { createBrokerClient } from '#cli/broker/broker-client.ts';
import { loadLogin } from '#cli/broker/login-config.ts';
import type { CliIo } from '#cli/output/io.ts';
import { findPeering } from '#cli/peerings/follow.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { BrokerSaid } from './facts.ts';

/** Undefined: not logged in. */
export async function askBroker(
  io: CliIo,
  [consumer, provider]: readonly [string, string],
  withinMs: number,
): Promise<BrokerSaid | undefined> {
  const login = await loadLogin(io).catch((error: unknown) => {
    if (codeOf(error) === 'unauthenticated') return undefined;
    throw error;
  });
  if (login === undefined) return undefined;
  const { url } = login;
  const signal = abortsWith(io.signal, AbortSignal.timeout(withinMs));
  const broker = createBrokerClient({ ...io, signal }, login);
  try {
    const peering = await findPeering(broker, consumer, provider);
    return { url, ...(peering !== undefined && { phase: peering.phase }), conditions: peering?.conditions ?? [] };
  } catch (error) {
    io.signal.throwIfAborted();
    return { url, failure: messageOf(error), conditions: [] };
  } finally {
    broker.close();
  }
}
