/** Rule authentication: a signature, a certificate or an identity was reported; the peerings concerned are looked at. */
import { reaction } from '#functions/runtime/reaction.ts';

export const handler = reaction('peerings');
