/**
 * What a function runs on. The local server hands it in through the invocation context, which is how one process can hold many brokers; a
 * cloud runtime builds it once per container and registers it with `composeFrom`.
 */
import type { Context } from 'aws-lambda';
import type { AgentCaller } from '#control/access/caller.ts';
import type { Control } from '#control/control.ts';
import type { Listener, SocketHolder } from '#control/events/listeners.ts';
import type { ClusterRef } from '#control/ports/agent-channel.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';

/** The open WebSockets of agents and portals, by connection id. */
export interface Connections {
  opened(connectionId: string, agent: AgentCaller): Promise<void>;
  /** A portal is told of news from now on. Throws `limit_reached`. */
  listens(connectionId: string, listener: Listener): Promise<void>;
  /** Undefined when it is not open. */
  holderOf(connectionId: string): Promise<SocketHolder | undefined>;
  /** Answers with the agent when it has no other one open. */
  closed(connectionId: string): Promise<AgentCaller | undefined>;
  /** Closes every connection of a cluster; how many there were. */
  hangUp(cluster: ClusterRef): Promise<number>;
  /** Closes this one. */
  close(connectionId: string): Promise<void>;
}

/** What it hears is a hint, like every event. */
export interface Listening {
  /**
   * Resolves with true when something may have changed since the last answer of this, or since it listens: at once if it has; with false after `withinMs`
   * in which nothing was heard. Rejects with the signal and when the broker stops.
   */
  changed(withinMs: number, signal: AbortSignal): Promise<boolean>;
  /** To be called once, when the wait is over. */
  end(): void;
}

export interface Composition {
  readonly control: Control;
  /** The same use cases with the rights to this one tenant. Undefined where one process has the rights to all. */
  readonly controlOf?: (tenant: string) => Control;
  readonly connections: Connections;
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  /**
   * Listens, from now on, for changes of what has one of these names (`awaited` in `control/events/changes.ts`). Throws `rate_limited` where the tenant
   * waits as often as it may.
   */
  readonly listen: (tenant: string, names: readonly string[]) => Listening;
  /** Told of the `authorization` of each request for members: whose it is, or undefined when it was refused. */
  readonly onMember?: (authorization: string, tenant: string | undefined) => void;
  /** Default: what a request may ask for. */
  readonly longestWaitSeconds?: number;
  /** Set where CloudWatch reads the log: the broker's name in metrics. */
  readonly metricsBroker?: string;
  /** Where agents open their WebSocket, when it is not this very server. */
  readonly doorbellUrl?: string;
}

const slot = Symbol.for('isthmus.composition');
type ComposedContext = Context & { readonly [slot]?: Composition };

export const withComposition = (context: Context, composition: Composition): Context => {
  const composed: ComposedContext = { ...context, [slot]: composition };
  return composed;
};

let cloud: (() => Composition) | undefined;
/** For a runtime that has no invocation context of its own making. */
export const composeFrom = (factory: () => Composition): void => {
  let built: Composition | undefined;
  cloud = () => {
    built ??= factory();
    return built;
  };
};

export function compositionOf(context: Context): Composition {
  const composition = (context as ComposedContext)[slot] ?? cloud?.();
  if (composition === undefined) throw new Error('no composition: neither local server nor runtime provided one');
  return composition;
}
