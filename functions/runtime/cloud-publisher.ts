/** For functions that may publish: the event bus. */
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { createPublisher, type Publisher } from '#control/adapters/eventbridge/publisher.ts';
import { detailOf } from './bus-event.ts';
import { eventSource } from './bus-patterns.ts';
import { clientSettings } from './client-settings.ts';
import type { PartDeps } from './cloud.ts';

export const bridgePublisher = ({ env, log, backoff }: PartDeps): Publisher =>
  createPublisher({
    client: new EventBridgeClient(clientSettings),
    busName: env.BUS_NAME,
    source: eventSource,
    detailOf,
    backoff,
    log,
  });
