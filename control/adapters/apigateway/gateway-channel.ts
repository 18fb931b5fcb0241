/** The agent channel over an API Gateway WebSocket API: rings by posting to each connection of a cluster, and forgets those that are gone. */
import type { Log } from '#shared/ports/log.ts';
import type { AgentChannel, ClusterRef } from '../../ports/agent-channel.ts';
import type { ConnectionTable } from './connections.ts';
import type { SocketGateway } from './socket-gateway.ts';

export interface GatewayChannel extends AgentChannel {
  /** Resolves when every ring so far has been sent or has failed: a function must not end before, or it freezes with them. Never rejects. */
  settled(): Promise<void>;
  /** Closes every connection of a cluster; how many there were. */
  hangUp(cluster: ClusterRef): Promise<number>;
  /** Closes this one. */
  close(connectionId: string): Promise<void>;
}

export interface GatewayChannelOptions {
  readonly gateway: SocketGateway;
  readonly connections: ConnectionTable;
  readonly log: Log;
}

export function createGatewayChannel({ gateway, connections, log }: GatewayChannelOptions): GatewayChannel {
  const underway = new Set<Promise<void>>();
  /** Of the same invocation: the newest revision says it all. */
  const waiting = new Map<string, { readonly cluster: ClusterRef; revision: number }>();

  async function post(connectionId: string, frame: unknown): Promise<void> {
    if ((await gateway.post(connectionId, frame)) === 'gone') await connections.remove(connectionId);
  }

  async function close(connectionId: string): Promise<void> {
    await gateway.close(connectionId);
    await connections.remove(connectionId);
  }

  async function ringNow(cluster: ClusterRef, revision: () => number): Promise<void> {
    const open = await connections.of(cluster);
    const frame = { type: 'desired', revision: revision() };
    const results = await Promise.allSettled(open.map((connectionId) => post(connectionId, frame)));
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

    close,

    async hangUp(cluster) {
      const open = await connections.of(cluster);
      for (const connectionId of open) await close(connectionId);
      return open.length;
    },
  };
}
