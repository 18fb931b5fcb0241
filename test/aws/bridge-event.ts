/** Events as EventBridge hands them to a target. */
import type { NewEvent } from '#control/ports/store.ts';
import { detailOf } from '#functions/runtime/bus-event.ts';
import { eventSource } from '#functions/runtime/bus-patterns.ts';

export const bridgeEvent = (event: NewEvent) => ({
  version: '0',
  id: '6a7e8feb-b491-4cf7-a9f1-bf3703467718',
  'detail-type': event.type,
  source: eventSource,
  account: '123456789012',
  time: new Date(event.at).toISOString(),
  region: 'eu-central-1',
  resources: [],
  detail: detailOf(event),
});
