/** Keeps the status of the BrokerLink: connected or not, why, and when the last exchange was. */

import type { Cluster } from '#kube/model/types.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { protocolVersion } from '#shared/schema/protocol/agent-protocol.ts';
import { brokerLinkName } from './enroll.ts';

/** A success is written at most this often; a change at once. */
const refreshMs = 60_000;

export function createLinkStatus(deps: { cluster: Cluster; clock: Clock; agentVersion: string }) {
  let connected: boolean | undefined;
  let reason = '';
  let writtenAt = 0;
  let exchangedAt: number | undefined;
  let since = '';

  async function write(now: boolean, because: string, message: string, signal: AbortSignal): Promise<void> {
    const at = deps.clock.now();
    if (now) exchangedAt = at;
    if (now === connected && because === reason && at - writtenAt < refreshMs) return;
    if (now !== connected) since = new Date(at).toISOString();
    connected = now;
    reason = because;
    writtenAt = at;
    const status = {
      connected: now,
      ...(now ? { lastExchangeTime: new Date(at).toISOString() } : {}),
      protocolVersion,
      agentVersion: deps.agentVersion,
      conditions: [
        {
          type: 'Connected',
          status: now ? ('True' as const) : ('False' as const),
          reason: because,
          message,
          lastTransitionTime: since,
        },
      ],
    };
    const object = {
      apiVersion: 'isthmus.dev/v1alpha1' as const,
      kind: 'BrokerLink' as const,
      metadata: { name: brokerLinkName },
      status,
    };
    // Telling is a courtesy: the exchange itself must not fail because of it.
    await deps.cluster.api
      .apply(brokerLinks, object, { fieldManager: fieldManager.agent, subresource: 'status' }, signal)
      .catch(() => undefined);
  }

  return {
    /** As of the last attempt; undefined before the first. */
    facts: () => (connected === undefined ? undefined : { connected, exchangedAtMs: exchangedAt }),
    exchanged: (signal: AbortSignal) => write(true, 'Exchanged', 'the broker answers', signal),
    failed: (error: unknown, signal: AbortSignal) => write(false, reasonOf(error), messageOf(error), signal),
  };
}

/** `broker_unreachable` becomes `BrokerUnreachable`: condition reasons are CamelCase. */
const reasonOf = (error: unknown): string =>
  (codeOf(error) ?? 'internal').replaceAll(/(?:^|_)([a-z])/g, (_match, letter: string) => letter.toUpperCase());
