/** The connections of a WebSocket API, whose functions share them by the table alone. */
import type { ConnectionTable } from '#control/adapters/apigateway/connections.ts';
import type { Connections } from './composition.ts';

/** `ends`: how connections are closed, which the table cannot. */
export const storedConnections = (
  table: ConnectionTable,
  ends: Pick<Connections, 'hangUp' | 'close'>,
): Connections => ({
  opened: (connectionId, agent) => table.add(connectionId, agent),
  listens: (connectionId, listener) => table.listeners.add(connectionId, listener),
  holderOf: (connectionId) => table.holderOf(connectionId),
  closed: (connectionId) => table.remove(connectionId),
  ...ends,
});
