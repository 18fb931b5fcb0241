/** Rule negotiation: a slice, a quota or a virtual node was reported; the peerings concerned are looked at. */
import { reaction } from '#functions/runtime/event-handler.ts';

export const handler = reaction('peerings');
