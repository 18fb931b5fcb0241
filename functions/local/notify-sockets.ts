/** The WebSockets of one process, of agents and of portals: the same three functions as behind an API Gateway WebSocket API, and the channel that rings. */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { AgentCaller } from '#control/access/caller.ts';
import type { Listener } from '#control/events/listeners.ts';
import type { AgentChannel, ClusterRef } from '#control/ports/agent-channel.ts';
import { handler as connect } from '#functions/channel/connect.ts';
import { handler as disconnect } from '#functions/channel/disconnect.ts';
import { handler as message } from '#functions/channel/message.ts';
import { type SocketEvent, type SocketFunction, socketPath } from '#functions/channel/socket.ts';
import type { Composition, Connections } from '#functions/runtime/composition.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { ChangeSignal } from './change-signal.ts';
import { fromGatewayResult, splitUrl } from './gateway-event.ts';
import { invocationContext } from './invocation.ts';
import { createListeningSockets } from './listening-sockets.ts';
import { type Proxies, trustProxies } from './proxies.ts';
import { type StartTurns, turnOf, turnOfAddress } from './start-turns.ts';

/** API Gateway's limit for one frame. */
const maxFrameBytes = 32 * 1024;
/** A peer that vanished without a FIN is noticed within two of these. */
const keepAliveMs = 30_000;
/** How long an agent may take to answer that the broker closes. */
const closeMs = 1_000;

/** For a client to read why it was refused. */
const lingerMs = 2_000;

const refKey = ({ tenant, clusterId }: ClusterRef): string => `${tenant}/${clusterId}`;

interface Attached {
  readonly ids: Ids;
  readonly turns: StartTurns;
  readonly hear: ChangeSignal['hear'];
}

export interface NotifySockets extends AgentChannel {
  readonly connections: Connections;
  /** How many agents are connected. */
  readonly size: number;
  /** Frames are handled in turns over the tenants, connections are opened in turns over their addresses. */
  attach(server: Server, composition: Composition, { ids, turns, hear }: Attached): void;
  close(): Promise<void>;
}

interface Connection {
  agent?: AgentCaller;
  listener?: Listener;
  socket?: WebSocket;
  alive: boolean;
}

const tenantOf = ({ agent, listener }: Connection): string => agent?.tenant ?? listener?.tenant ?? '';

export function createNotifySockets(proxies: Proxies = trustProxies([])): NotifySockets {
  const open = new Map<string, Connection>();
  const byCluster = new Map<string, Set<Connection>>();
  const sockets = new WebSocketServer({ noServer: true, maxPayload: maxFrameBytes, clientTracking: true });
  const listening = createListeningSockets((connectionId) => open.get(connectionId)?.socket);
  let keepAlive: NodeJS.Timeout | undefined;
  let closing = false;

  const connections: Connections = {
    async opened(connectionId, agent) {
      const connection = open.get(connectionId);
      if (connection === undefined) return;
      connection.agent = agent;
      const key = refKey(agent);
      byCluster.set(key, (byCluster.get(key) ?? new Set()).add(connection));
    },
    async listens(connectionId, listener) {
      const connection = open.get(connectionId);
      if (connection === undefined) return;
      listening.add(connectionId, listener);
      connection.listener = listener;
    },
    async holderOf(connectionId) {
      const { agent, listener } = open.get(connectionId) ?? {};
      if (agent !== undefined) return { agent };
      return listener && { listener };
    },
    async closed(connectionId) {
      const connection = open.get(connectionId);
      open.delete(connectionId);
      if (connection?.listener !== undefined) listening.remove(connectionId, connection.listener);
      if (connection?.agent === undefined) return undefined;
      const key = refKey(connection.agent);
      const peers = byCluster.get(key);
      peers?.delete(connection);
      if (peers !== undefined && peers.size > 0) return undefined;
      byCluster.delete(key);
      return connection.agent;
    },
    async hangUp(cluster) {
      const peers = [...(byCluster.get(refKey(cluster)) ?? [])];
      for (const { socket } of peers) socket?.close(1008, 'the cluster has left');
      return peers.length;
    },
    async close(connectionId) {
      open.get(connectionId)?.socket?.close(1008, 'refused');
    },
  };

  return {
    connections,
    get size() {
      return [...open.values()].filter(({ socket, agent }) => socket !== undefined && agent !== undefined).length;
    },
    ring(cluster, revision) {
      for (const { socket } of byCluster.get(refKey(cluster)) ?? []) {
        if (socket?.readyState === 1) socket.send(JSON.stringify({ type: 'desired', revision }));
      }
    },
    attach(server, composition, { ids, turns, hear }) {
      const { log, control, clock } = composition;
      listening.attach({ control, clock, log, turns, hear });
      const invoke = (run: SocketFunction, event: SocketEvent, name: string) =>
        run(event, invocationContext(composition, name, event.requestContext.requestId));

      const upgrade = async (request: IncomingMessage, raw: Duplex, head: Buffer) => {
        const connectionId = ids.next('conn');
        const requestId = ids.next('req');
        await turns.take(turnOfAddress(proxies.clientOf(request)));
        if (raw.destroyed) return;
        if (splitUrl(request.url ?? '').rawPath !== socketPath) {
          return refuse(raw, 404, `agents and portals connect at ${socketPath}\n`);
        }
        const event = socketEvent('CONNECT', connectionId, requestId, composition.clock.now(), request, proxies);
        const connection: Connection = { alive: true };
        open.set(connectionId, connection);
        let upgraded = false;
        raw.once('close', () => {
          if (!upgraded) void connections.closed(connectionId);
        });
        const result = fromGatewayResult(await invoke(connect, event, '$connect'));
        if (result.statusCode !== 200) {
          await connections.closed(connectionId);
          return refuse(raw, result.statusCode, result.body.toString(), 'application/problem+json');
        }
        if (raw.destroyed) return;
        sockets.handleUpgrade(request, raw, head, (socket) => {
          upgraded = true;
          connection.socket = socket;
          const on = (type: 'MESSAGE' | 'DISCONNECT', body?: string) =>
            socketEvent(type, connectionId, ids.next('req'), composition.clock.now(), request, proxies, body);
          socket.on('pong', () => {
            connection.alive = true;
          });
          handleInTurn(socket, (data) => {
            connection.alive = true;
            return turns
              .take(turnOf(tenantOf(connection)))
              .then(() => invoke(message, on('MESSAGE', data.toString()), '$default'))
              .then((answer) => {
                const { statusCode, body } = fromGatewayResult(answer);
                if (statusCode !== 200) socket.close(1008);
                else if (body.length > 0) socket.send(body.toString());
              })
              .catch((error: unknown) => log.error('handling a doorbell frame failed', error, { connectionId }));
          });
          socket.on('error', (error) => log.debug('doorbell socket failed', { connectionId, reason: error.message }));
          socket.on('close', () => {
            // That the broker stops says nothing about its agents.
            if (closing) return void connections.closed(connectionId);
            invoke(disconnect, on('DISCONNECT'), '$disconnect').catch((error: unknown) =>
              log.error('closing a doorbell failed', error, { connectionId }),
            );
          });
        });
      };
      server.on('upgrade', (request, raw, head) => {
        raw.on('error', () => raw.destroy());
        upgrade(request, raw, head).catch((error: unknown) => {
          log.error('opening a doorbell failed', error);
          raw.destroy();
        });
      });
      keepAlive = setInterval(() => {
        for (const connection of open.values()) {
          if (connection.socket === undefined) continue;
          if (!connection.alive) connection.socket.terminate();
          connection.alive = false;
          connection.socket.ping();
        }
      }, keepAliveMs);
      keepAlive.unref();
    },
    async close() {
      closing = true;
      listening.close();
      clearInterval(keepAlive);
      const ending = [...sockets.clients].map(async (socket) => {
        const closed = new Promise((resolve) => socket.once('close', resolve));
        socket.close(1001, 'the broker is stopping');
        const impatience = setTimeout(() => socket.terminate(), closeMs);
        await closed;
        clearTimeout(impatience);
      });
      await Promise.all(ending);
      sockets.close();
    },
  };
}

/**
 * While a frame waits or is handled, nothing more is read from its connection, so a client that sends faster than its turns come waits for TCP, and the
 * queue does not grow. Frames that were read together come together. `handle` does not reject.
 */
export function handleInTurn(socket: WebSocket, handle: (data: RawData) => Promise<void>): void {
  let unfinished = 0;
  socket.on('message', (data) => {
    unfinished += 1;
    socket.pause();
    void handle(data).finally(() => {
      unfinished -= 1;
      if (unfinished === 0) socket.resume();
    });
  });
}

function refuse(raw: Duplex, status: number, body: string, type = 'text/plain'): void {
  const head = [
    `HTTP/1.1 ${status} Refused`,
    `content-type: ${type}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  // A client that keeps its half open would keep the descriptor.
  const linger = setTimeout(() => raw.destroy(), lingerMs).unref();
  raw.once('close', () => clearTimeout(linger));
  raw.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

const routeKeys = { CONNECT: '$connect', MESSAGE: '$default', DISCONNECT: '$disconnect' } as const;

function socketEvent(
  eventType: keyof typeof routeKeys,
  connectionId: string,
  requestId: string,
  now: number,
  request: IncomingMessage,
  proxies: Proxies,
  body?: string,
): SocketEvent {
  const requestContext = {
    routeKey: routeKeys[eventType],
    eventType,
    connectionId,
    requestId,
    extendedRequestId: requestId,
    messageId: requestId,
    messageDirection: 'IN' as const,
    requestTime: new Date(now).toISOString(),
    requestTimeEpoch: now,
    connectedAt: now,
    stage: '$default',
    domainName: request.headers.host ?? '',
    apiId: 'local',
    identity: { sourceIp: proxies.clientOf(request) },
  };
  return {
    requestContext: requestContext as unknown as SocketEvent['requestContext'],
    ...(eventType === 'CONNECT' && { headers: request.headers as Record<string, string | undefined> }),
    ...(body !== undefined && { body }),
    isBase64Encoded: false,
  };
}
