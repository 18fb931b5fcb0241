/**
 * The WebSocket that rings when there is something new to read, and over which an idle agent is heard of. Losing it costs latency, never
 * correctness: without it the agent polls.
 */

import WebSocket from 'ws';
import { abortScope } from '#shared/async/abort-scope.ts';
import { backoffMs } from '#shared/async/backoff.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { type AgentFrame, ServerFrame } from '#shared/schema/protocol/agent-protocol.ts';
import type { AgentIntervals } from './poll-interval.ts';
import type { BrokerClient } from './signed-client.ts';

const path = '/v1/agent/connect';
const answerWithinMs = 60_000;
const tcpKeepAliveMs = 30_000;
/** The hosted gateway closes connections after two hours; leave earlier, at a time of our own. */
const rotateAfterMs = { least: 100 * 60_000, most: 115 * 60_000 };
/** Full jitter: anywhere in a window that doubles. Ten thousand agents that lost their broker at once must not come back at once. */
const windowMs = { first: 2_000, most: 120_000, refused: 60_000 };

export interface Doorbell {
  /** Rings `onRing` for news and after every time without a connection; returns when the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  connected(): boolean;
}

export interface DoorbellDeps {
  readonly client: BrokerClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly intervals: AgentIntervals;
  /** The newest desired revision known here. */
  readonly revision: () => number;
  readonly onRing: () => void;
  /** It opened or closed. */
  readonly onChange?: () => void;
  /** Where the WebSocket is when the broker said so; undefined: at the broker itself. Asked at every connection. */
  readonly address?: () => string | undefined;
  readonly random?: () => number;
}

interface Connection {
  readonly closed: Promise<void>;
  readonly isOpen: () => boolean;
  close(): void;
}

export function createDoorbell(deps: DoorbellDeps): Doorbell {
  const { client, clock, log, intervals, revision, onRing, onChange = () => undefined } = deps;
  const { address = () => undefined, random = Math.random } = deps;
  let current: Connection | undefined;
  let refused = false;

  function hear(text: string): void {
    const { data: frame } = ServerFrame.safeParse(parse(text));
    if (frame === undefined) return;
    if (frame.type === 'pong') takeIntervals(frame);
    if (frame.type === 'desired' || (frame.revision ?? revision()) !== revision()) onRing();
  }

  /** The next exchange fails for the same reason and says so; thrown here, in a listener of the socket, it would end the process. */
  function takeIntervals(frame: Parameters<AgentIntervals['adopt']>[0]): void {
    try {
      intervals.adopt(frame);
    } catch (error) {
      log.warn('pong of the broker ignored', { reason: messageOf(error) });
    }
  }

  /** Open, or undefined when that failed. */
  async function connect(signal: AbortSignal): Promise<Connection | undefined> {
    const elsewhere = address();
    const socket = new WebSocket(elsewhere ?? `${client.identity.url.replace(/^http/, 'ws')}${path}`, {
      headers: { authorization: await client.authorization('GET', path, '') },
      handshakeTimeout: 10_000,
      maxPayload: 64 * 1024,
      // The broker's own CA speaks for the broker only.
      ...(client.identity.ca === undefined || elsewhere !== undefined ? {} : { ca: client.identity.ca }),
    });
    const alive = abortScope(signal);
    const stop = () => socket.terminate();
    alive.signal.addEventListener('abort', stop, { once: true });
    let heardAt = clock.now();
    const closed = new Promise<void>((resolve) => {
      socket.on('close', (code) => {
        refused ||= code === 1008;
        alive.signal.removeEventListener('abort', stop);
        alive.abort();
        alive.unlink();
        resolve();
      });
    });
    socket.on('error', (error) => log.debug('doorbell connection failed', { reason: error.message }));
    socket.on('upgrade', (response) => response.socket.setKeepAlive(true, tcpKeepAliveMs));
    socket.on('unexpected-response', (request, { statusCode }) => {
      refused ||= statusCode === 429;
      log.debug('doorbell was refused', { statusCode });
      request.destroy();
      socket.terminate();
    });
    socket.on('message', (data) => {
      heardAt = clock.now();
      hear(String(data));
    });
    const opened = new Promise<boolean>((resolve) => {
      socket.on('open', () => resolve(true));
      closed.then(() => resolve(false));
    });
    if (!(await opened)) return undefined;
    void keepUp(socket, () => heardAt, alive.signal);
    return { closed, isOpen: () => socket.readyState === WebSocket.OPEN, close: () => socket.close(1000) };
  }

  /** Says that the cluster lives, as often as the broker wants to hear it, and leaves a connection that no longer answers. */
  async function keepUp(socket: WebSocket, heardAt: () => number, signal: AbortSignal): Promise<void> {
    for (let count = 1; !signal.aborted; count += 1) {
      await waitHeartbeat(signal);
      if (signal.aborted || socket.readyState !== WebSocket.OPEN) return;
      const answer = intervals.wantsAnswer(count);
      const ping: AgentFrame = {
        type: 'ping',
        revision: revision(),
        heartbeatSeconds: intervals.heartbeatMs() / 1_000,
      };
      const sentAt = clock.now();
      socket.send(JSON.stringify(answer ? { ...ping, answer } : ping));
      if (!answer) continue;
      void clock.sleep(answerWithinMs, signal).then(
        () => heardAt() < sentAt && socket.terminate(),
        () => undefined,
      );
    }
  }

  /** Until the next ping is due by the interval of then: a shorter one takes effect at once. */
  async function waitHeartbeat(signal: AbortSignal): Promise<void> {
    const since = clock.now();
    for (;;) {
      const left = since + intervals.heartbeatMs() - clock.now();
      if (left <= 0 || signal.aborted) return;
      const step = abortScope(signal);
      const changed = intervals.changed(() => step.abort());
      await clock.sleep(left, step.signal).catch(() => undefined);
      changed();
      step.unlink();
    }
  }

  function hold(next: Connection | undefined): void {
    const before = current;
    current = next;
    // Only now, so that the broker finds at least one of the two when it rings.
    before?.close();
    if ((before === undefined) !== (next === undefined)) onChange();
    // While one was open nothing was missed but what the next ping finds out.
    if (next !== undefined && before === undefined) onRing();
  }

  async function pause(failures: number, signal: AbortSignal): Promise<void> {
    const window = backoffMs(failures, { baseMs: windowMs.first, maxMs: windowMs.most });
    await clock.sleep(random() * Math.max(window, refused ? windowMs.refused : 0), signal).catch(() => undefined);
    refused = false;
  }

  async function untilClosedOrOld(connection: Connection, signal: AbortSignal): Promise<void> {
    const life = abortScope(signal);
    const age = rotateAfterMs.least + random() * (rotateAfterMs.most - rotateAfterMs.least);
    await Promise.race([connection.closed, clock.sleep(age, life.signal).catch(() => undefined)]);
    life.abort();
    life.unlink();
  }

  return {
    connected: () => current !== undefined,
    async run(signal) {
      let failures = 0;
      while (!signal.aborted) {
        const next = await connect(signal).catch((error: unknown) => {
          log.debug('doorbell failed', { reason: String(error) });
          return undefined;
        });
        if (next !== undefined) {
          const since = clock.now();
          hold(next);
          await untilClosedOrOld(next, signal);
          if (clock.now() - since > 10_000) failures = 0;
          if (signal.aborted) break;
          // Its time is up: the next one is opened before this one is closed.
          if (next.isOpen()) continue;
        }
        if (current?.isOpen() === false) hold(undefined);
        failures += 1;
        await pause(failures, signal);
      }
      hold(undefined);
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
