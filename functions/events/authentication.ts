/** Rule authentication: a signature, a certificate or an identity was reported; the peerings concerned are looked at. */
import { reaction } from '#functions/runtime/event-handler.ts';

export const handler = reaction('peerings');
