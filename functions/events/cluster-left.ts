/** Event cluster.left: closes the notify sockets of that cluster. Repeated or late, it costs an agent one reconnection. */
import type { Context, EventBridgeEvent } from 'aws-lambda';
import { compositionOf } from '#functions/runtime/composition.ts';
import type { EventDetail } from '../runtime/bus-event.ts';

export const handler = async (
  { detail }: EventBridgeEvent<'cluster.left', EventDetail>,
  context: Context,
): Promise<void> => {
  const { connections, log } = compositionOf(context);
  const clusterId = detail.subject.replace(/^cluster\//, '');
  const closed = await connections.hangUp({ tenant: detail.tenant, clusterId });
  if (closed > 0) log.info('doorbells of a cluster that left are closed', { cluster: clusterId, closed });
};
