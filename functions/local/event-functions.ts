/** Subscribes the event functions to the local bus, with EventBridge-shaped events. */
import type { EventBus } from '#control/ports/event-bus.ts';
import type { OutboxEvent } from '#control/ports/store.ts';
import { handler as clusterLeft } from '#functions/events/cluster-left.ts';
import { detailOf } from '#functions/runtime/bus-event.ts';
import { eventSource } from '#functions/runtime/bus-patterns.ts';
import type { Composition } from '#functions/runtime/composition.ts';
import { invocationContext } from './invocation.ts';

const toBridgeEvent = <T extends string>(event: OutboxEvent, type: T) => ({
  version: '0',
  id: event.id,
  'detail-type': type,
  source: eventSource,
  account: 'local',
  region: 'local',
  time: new Date(event.at).toISOString(),
  resources: [],
  detail: detailOf(event),
});

export function subscribeEventFunctions(bus: EventBus, composition: Composition): void {
  bus.subscribe({
    name: 'cluster-left',
    types: ['cluster.left'],
    handle: (event) =>
      clusterLeft(toBridgeEvent(event, 'cluster.left'), invocationContext(composition, 'cluster-left', event.id)),
  });
}
