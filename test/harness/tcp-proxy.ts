/** A TCP connection for tests that can be made to stall (half-open), trickle, or break, while both ends stay alive. */
import net from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** How many connections were opened so far. */
  readonly opened: () => number;
  /** Existing connections become black holes: nothing passes, and neither end gets FIN or RST. New connections follow `newConnections`. */
  stall(): void;
  /** What happens to connections that are opened from now on. */
  newConnections(mode: 'pass' | 'stall' | 'refuse'): void;
  /** Cuts all connections. */
  cut(): void;
  /** From now on at most `bytes` pass per `everyMs` and connection towards the client; undefined: at full speed. */
  trickle(bytes: number | undefined, everyMs?: number): void;
  close(): Promise<void>;
}

interface ProxiedConnection {
  readonly client: net.Socket;
  readonly server: net.Socket;
  stalled: boolean;
}

export async function startTcpProxy(targetPort: number, host = '127.0.0.1'): Promise<TcpProxy> {
  const connections = new Set<ProxiedConnection>();
  let mode: 'pass' | 'stall' | 'refuse' = 'pass';
  let portion: { readonly bytes: number; readonly everyMs: number } | undefined;
  let opened = 0;

  async function forward(connection: ProxiedConnection, data: Buffer): Promise<void> {
    connection.server.pause();
    for (let from = 0; from < data.length && !connection.stalled; ) {
      const size = portion === undefined ? data.length : portion.bytes;
      connection.client.write(data.subarray(from, from + size));
      from += size;
      if (portion !== undefined) await new Promise((resolve) => setTimeout(resolve, portion?.everyMs ?? 0));
    }
    connection.server.resume();
  }

  const listener = net.createServer((client) => {
    opened++;
    if (mode === 'refuse') return void client.destroy();
    const connection: ProxiedConnection = { client, server: net.connect(targetPort, host), stalled: mode === 'stall' };
    connections.add(connection);
    client.on('data', (data) => void (connection.stalled || connection.server.write(data)));
    connection.server.on('data', (data) => void forward(connection, data));
    const end = (): void => {
      // A connection that is silently broken does not pass the end on either.
      if (connection.stalled) return;
      connections.delete(connection);
      client.destroy();
      connection.server.destroy();
    };
    for (const socket of [client, connection.server]) socket.on('error', end).on('close', end);
  });
  await new Promise<void>((resolve) => listener.listen(0, host, resolve));

  const cut = (): void => {
    for (const { client, server } of connections) {
      client.destroy();
      server.destroy();
    }
    connections.clear();
  };
  return {
    port: (listener.address() as net.AddressInfo).port,
    opened: () => opened,
    stall() {
      for (const connection of connections) connection.stalled = true;
    },
    newConnections(next) {
      mode = next;
    },
    cut,
    trickle(bytes, everyMs = 1) {
      portion = bytes === undefined ? undefined : { bytes, everyMs };
    },
    async close() {
      const closed = new Promise((resolve) => listener.close(resolve));
      cut();
      await closed;
    },
  };
}
