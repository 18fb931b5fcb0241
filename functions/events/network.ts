/** Rule network: a gateway, a key or the state of a link was reported; the peerings concerned are looked at. */
import { reaction } from '#functions/runtime/event-handler.ts';

export const handler = reaction('peerings');
