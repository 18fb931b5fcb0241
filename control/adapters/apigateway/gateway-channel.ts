/** The agent channel over an API Gateway WebSocket API: rings by posting to each connection of a cluster, and forgets those that are gone. */
import {
  type ApiGatewayManagementApiClient,
  DeleteConnectionCommand,
  PostToConnectionCommand,
} from '@aws-sdk/client-apigatewaymanagementapi';
import type { Log } from '#shared/ports/log.ts';
import type { AgentChannel, ClusterRef } from '../../ports/agent-channel.ts';
import type { ConnectionTable } from './connections.ts';

export interface GatewayChannel extends AgentChannel {
  /** Resolves when every ring so far has been sent or has failed: a function must not end before, or it freezes with them. Never rejects. */
  settled(): Promise<void>;
  /** Closes every connection of a cluster; how many there were. */
  hangUp(cluster: ClusterRef): Promise<number>;
}

export interface GatewayChannelOptions {
  readonly client: ApiGatewayManagementApiClient;
  readonly connections: ConnectionTable;
  readonly log: Log;
}

/** The agent left without `$disconnect`. */
const isGone = (error: unknown): boolean =>
  (error as { readonly $metadata?: { readonly httpStatusCode?: number } } | undefined)?.$metadata?.httpStatusCode ===
  410;

export function createGatewayChannel({ client, connections, log }: GatewayChannelOptions): GatewayChannel {
  const underway = new Set<Promise<void>>();
  /** Of the same invocation: the newest revision says it all. */
  const waiting = new Map<string, { readonly cluster: ClusterRef; revision: number }>();

  async function toConnection(connectionId: string, send: () => Promise<unknown>): Promise<void> {
    try {
      await send();
    } catch (error) {
      if (!isGone(error)) throw error;
      await connections.remove(connectionId);
    }
  }

  async function ringNow(cluster: ClusterRef, revision: () => number): Promise<void> {
    const open = await connections.of(cluster);
    const Data = Buffer.from(JSON.stringify({ type: 'desired', revision: revision() }));
    const results = await Promise.allSettled(
      open.map((ConnectionId) =>
        toConnection(ConnectionId, () => client.send(new PostToConnectionCommand({ ConnectionId, Data }))),
      ),
    );
    for (const result of results) {
      if (result.status === 'rejected') log.warn('ringing failed', { ...cluster, reason: String(result.reason) });
    }
  }

  return {
    ring(cluster, revision) {
      const key = `${cluster.tenant}/${cluster.clusterId}`;
      const before = waiting.get(key);
      if (before !== undefined) {
        before.revision = Math.max(before.revision, revision);
        return;
      }
      const one = { cluster, revision };
      waiting.set(key, one);
      const ringing = ringNow(cluster, () => {
        waiting.delete(key);
        return one.revision;
      })
        .catch((error: unknown) => {
          waiting.delete(key);
          log.warn('ringing failed', { ...cluster, reason: String(error) });
        })
        .finally(() => underway.delete(ringing));
      underway.add(ringing);
    },

    async settled() {
      while (underway.size > 0) await Promise.all(underway);
    },

    async hangUp(cluster) {
      const open = await connections.of(cluster);
      for (const ConnectionId of open) {
        await toConnection(ConnectionId, () => client.send(new DeleteConnectionCommand({ ConnectionId })));
        await connections.remove(ConnectionId);
      }
      return open.length;
    },
  };
}
