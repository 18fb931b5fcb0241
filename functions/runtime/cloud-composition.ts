/** What event functions need besides the composition of all functions. Only the cloud has it: locally one process does it all. */
import type { Context } from 'aws-lambda';
import type { ListenerBell } from '#control/adapters/apigateway/listener-bell.ts';
import type { DeliveredBus } from '#control/adapters/eventbridge/delivered-bus.ts';
import type { Publisher } from '#control/adapters/eventbridge/publisher.ts';
import { type Composition, compositionOf } from './composition.ts';

export interface CloudComposition extends Composition {
  /** Events that the bus delivered reach the control plane's subscribers through this. */
  readonly delivered: DeliveredBus;
  readonly publisher: Publisher;
  readonly bell: ListenerBell;
}

export function cloudCompositionOf(context: Context): CloudComposition {
  const composition: Composition & Partial<CloudComposition> = compositionOf(context);
  const { delivered, publisher, bell } = composition;
  if (delivered === undefined || publisher === undefined || bell === undefined)
    throw new Error('no composition of the cloud: this function runs there only');
  return { ...composition, delivered, publisher, bell };
}
