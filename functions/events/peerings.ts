/** Rule peerings: something that may matter to peerings was committed; those concerned are looked at, and requests that a cluster could not meet so far are tried again. */
import { reaction } from '#functions/runtime/event-handler.ts';

export const handler = reaction('peerings');
