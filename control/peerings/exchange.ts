/** The agents' side: what they report, what they should make so, what they have done. */
import type { DesiredAnswer, ObservedBatch } from '#shared/schema/protocol/agent-protocol.ts';
import type { AgentCaller } from '../access/caller.ts';
import type { ControlDeps } from '../deps.ts';

export interface Exchange {
  /** Stores what changed and looks at the peerings concerned. Answers with the newest desired revision, so that an agent without a doorbell sees it must fetch. */
  observe(agent: AgentCaller, batch: ObservedBatch, signal?: AbortSignal): Promise<{ readonly revision: number }>;
  /** Sets changed after `after`; all of them when `after` is 0 or unknown here. */
  desired(agent: AgentCaller, after: number, signal?: AbortSignal): Promise<DesiredAnswer>;
  ack(agent: AgentCaller, revision: number, signal?: AbortSignal): Promise<void>;
}

export function createExchange(_deps: ControlDeps): Exchange {
  throw new Error('bodies follow');
}
