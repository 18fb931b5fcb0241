/** Rule peering: a peering was requested, changed or ended, or a cluster joined, changed or left. Coordinates the peerings concerned. */
import { reaction } from '#functions/runtime/event-handler.ts';

export const handler = reaction('peerings');
