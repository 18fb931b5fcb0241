/** Schedule: looks at every peering whose time has come, which bounds what a lost event can cost. */
import type { Context } from 'aws-lambda';
import { compositionOf } from '#functions/runtime/composition.ts';

export const handler = async (_event: unknown, context: Context): Promise<{ readonly nextDueAt?: number }> =>
  compositionOf(context).control.peerings.sweep();
