/** Rule applied: an agent applied or removed what was desired, and no object of a known kind changed; the peerings concerned are looked at. */
import { reaction } from '#functions/runtime/event-handler.ts';

export const handler = reaction('peerings');
