/** The one UDP socket of a node agent for pings: answers the pings of all peers, and hands answers to subscribers. */
import { createSocket, type Socket } from 'node:dgram';
import { networkPort } from '#shared/domain/network-keys.ts';
import type { Log } from '#shared/ports/log.ts';
import { answerTo, encodePing, maxPingBytes, type PingMessage, parsePing } from './message.ts';

/** What arrived, and from which gateway (its overlay address). */
type PingListener = (from: string, message: PingMessage, bytes: number) => void;

export interface PingSocket {
  /** Listens at our overlay address; undefined: nowhere. The same address again keeps the socket. Fails when the address is not there. */
  listenAt(address: string | undefined): Promise<void>;
  /** Best effort, as pings are; `bytes` pads the datagram. */
  send(to: string, message: PingMessage, bytes?: number): void;
  /** Returns what ends it. */
  onPong(listener: PingListener): () => void;
  /** Of pings of others, which are answered here; returns what ends it. */
  onPing(listener: PingListener): () => void;
  close(): void;
}

export function createPingSocket(log: Log, port: number = networkPort.ping): PingSocket {
  const listeners = { PING: new Set<PingListener>(), PONG: new Set<PingListener>() };
  let bound: { readonly address: string; readonly socket: Socket } | undefined;

  const post = (socket: Socket, data: Uint8Array, to: string, toPort: number): void =>
    // Unreachable peers and full queues are what pings are there to notice.
    socket.send(data, toPort, to, (error) => error && log.debug('a ping was not sent', { to, why: error.message }));

  function receive(socket: Socket, data: Uint8Array, from: string, fromPort: number): void {
    const message = parsePing(data);
    if (message === undefined) return;
    const answer = answerTo(message);
    // Only what is longer than a plain ping can be is padding: a prober of ours wants it back.
    if (answer !== undefined)
      post(socket, encodePing(answer, data.length > maxPingBytes ? data.length : 0), from, fromPort);
    for (const listener of listeners[message.msgType]) listener(from, message, data.length);
  }

  function close(): void {
    bound?.socket.close();
    bound = undefined;
  }

  return {
    async listenAt(address) {
      if (bound?.address === address) return;
      close();
      if (address === undefined) return;
      const socket = createSocket('udp4');
      socket.on('message', (data, remote) => receive(socket, data, remote.address, remote.port));
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.bind({ address, port, exclusive: true }, () => {
          socket.off('error', reject);
          resolve();
        });
      }).catch((error: unknown) => {
        socket.close();
        throw error;
      });
      socket.on('error', (error) => {
        log.warn('the ping socket failed', { why: error.message });
        if (bound?.socket === socket) close();
      });
      bound = { address, socket };
    },
    send(to, message, bytes) {
      if (bound !== undefined) post(bound.socket, encodePing(message, bytes), to, port);
    },
    onPong: (listener) => listen(listeners.PONG, listener),
    onPing: (listener) => listen(listeners.PING, listener),
    close,
  };
}

function listen(listeners: Set<PingListener>, listener: PingListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
