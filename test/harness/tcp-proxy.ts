/** A TCP line for tests that can be made to stall (half-open), trickle, or break, while both ends stay alive. */
import net from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** How many connections were opened so far. */
  readonly opened: () => number;
  /** Existing connections become black holes: nothing passes, and neither end gets FIN or RST. New connections follow `newLines`. */
  stall(): void;
  /** What happens to connections that are opened from now on. */
  newLines(mode: 'pass' | 'stall' | 'refuse'): void;
  /** Cuts all connections. */
  cut(): void;
  /** From now on at most `bytes` pass per `everyMs` and connection towards the client; undefined: at full speed. */
  trickle(bytes: number | undefined, everyMs?: number): void;
  close(): Promise<void>;
}

interface OutageTracker {
  readonly client: net.Socket;
  readonly server: net.Socket;
  stalled: boolean;
}

export async function startTcpProxy(targetPort: number, host = '127.0.0.1'): Promise<TcpProxy> {
  const lines = new Set<OutageTracker>();
  let mode: 'pass' | 'stall' | 'refuse' = 'pass';
  let pace: { readonly bytes: number; readonly everyMs: number } | undefined;
  let opened = 0;

  async function forward(line: OutageTracker, data: Buffer): Promise<void> {
    line.server.pause();
    for (let from = 0; from < data.length && !line.stalled; ) {
      const size = pace === undefined ? data.length : pace.bytes;
      line.client.write(data.subarray(from, from + size));
      from += size;
      if (pace !== undefined) await new Promise((resolve) => setTimeout(resolve, pace?.everyMs ?? 0));
    }
    line.server.resume();
  }

  const listener = net.createServer((client) => {
    opened++;
    if (mode === 'refuse') return void client.destroy();
    const line: OutageTracker = { client, server: net.connect(targetPort, host), stalled: mode === 'stall' };
    lines.add(line);
    client.on('data', (data) => void (line.stalled || line.server.write(data)));
    line.server.on('data', (data) => void forward(line, data));
    const end = (): void => {
      // A line that is silently broken does not pass the end on either.
      if (line.stalled) return;
      lines.delete(line);
      client.destroy();
      line.server.destroy();
    };
    for (const socket of [client, line.server]) socket.on('error', end).on('close', end);
  });
  await new Promise<void>((resolve) => listener.listen(0, host, resolve));

  const cut = (): void => {
    for (const { client, server } of lines) {
      client.destroy();
      server.destroy();
    }
    lines.clear();
  };
  return {
    port: (listener.address() as net.AddressInfo).port,
    opened: () => opened,
    stall() {
      for (const line of lines) line.stalled = true;
    },
    newLines(next) {
      mode = next;
    },
    cut,
    trickle(bytes, everyMs = 1) {
      pace = bytes === undefined ? undefined : { bytes, everyMs };
    },
    async close() {
      const closed = new Promise((resolve) => listener.close(resolve));
      cut();
      await closed;
    },
  };
}
