/** Rule peering: somebody asked for, changed or ended a peering, or a cluster came, changed or left; what it touches is looked at. */
import { reaction } from '#functions/runtime/reaction.ts';

export const handler = reaction('peerings');
