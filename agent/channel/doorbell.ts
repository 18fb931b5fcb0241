/** The WebSocket that rings when there is something new to read. Losing it costs latency, never correctness. */
import WebSocket from 'ws';
import { linkedAbort } from '#agent/kube/linked-abort.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { ServerFrame } from '#shared/schema/protocol/agent-protocol.ts';
import type { BrokerClient } from './broker-client.ts';

const path = '/v1/agent/connect';
const pingEveryMs = 25_000;
const silentForMs = 60_000;
/** The hosted gateway closes connections after two hours; leave earlier, at a time of our own. */
const reconnectAfterMs = 100 * 60_000;
const backoffMs = { first: 500, most: 30_000 };

export interface Doorbell {
  /** Rings `onRing` for every frame and on every (re)connection; returns when the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  connected(): boolean;
}

export interface DoorbellDeps {
  readonly client: BrokerClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly onRing: () => void;
  /** Where the WebSocket is when the broker said so; undefined: at the broker itself. Asked at every connection. */
  readonly address?: () => string | undefined;
  readonly random?: () => number;
}

export function createDoorbell({
  client,
  clock,
  log,
  onRing,
  address = () => undefined,
  random = Math.random,
}: DoorbellDeps): Doorbell {
  let connected = false;

  async function hold(signal: AbortSignal): Promise<void> {
    const elsewhere = address();
    const url = elsewhere ?? `${client.identity.url.replace(/^http/, 'ws')}${path}`;
    const socket = new WebSocket(url, {
      headers: { authorization: await client.authorization('GET', path, '') },
      handshakeTimeout: 10_000,
      maxPayload: 64 * 1024,
      // The broker's own CA speaks for the broker only.
      ...(client.identity.ca === undefined || elsewhere !== undefined ? {} : { ca: client.identity.ca }),
    });
    const alive = linkedAbort(signal);
    let lastHeard = clock.now();
    const closed = new Promise<void>((resolve) => {
      socket.on('close', () => resolve());
      socket.on('error', (error) => {
        log.debug('doorbell connection failed', { reason: error.message });
        resolve();
      });
    });
    socket.on('open', () => {
      connected = true;
      onRing();
    });
    socket.on('message', (data) => {
      lastHeard = clock.now();
      if (ServerFrame.safeParse(parse(String(data))).data?.type === 'desired') onRing();
    });
    const stop = () => socket.terminate();
    signal.addEventListener('abort', stop, { once: true });
    const watchdog = (async () => {
      const openedAt = clock.now();
      while (!alive.signal.aborted) {
        await clock.sleep(pingEveryMs, alive.signal).catch(() => undefined);
        if (alive.signal.aborted) return;
        if (clock.now() - lastHeard > silentForMs || clock.now() - openedAt > reconnectAfterMs)
          return socket.terminate();
        if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: 'ping' }));
      }
    })();
    await closed;
    connected = false;
    alive.abort();
    alive.unlink();
    signal.removeEventListener('abort', stop);
    socket.terminate();
    await watchdog;
  }

  return {
    connected: () => connected,
    async run(signal) {
      let failures = 0;
      while (!signal.aborted) {
        const before = clock.now();
        await hold(signal).catch((error: unknown) => log.debug('doorbell failed', { reason: String(error) }));
        failures = clock.now() - before > 10_000 ? 0 : failures + 1;
        const most = Math.min(backoffMs.most, backoffMs.first * 2 ** Math.min(failures, 10));
        await clock.sleep(most * (0.5 + random() / 2), signal).catch(() => undefined);
      }
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
