/** Schedule: looks at every peering whose time has come, which bounds what a lost event can cost, and continues the deletion of tenants. */
import type { Context } from 'aws-lambda';
import { compositionOf } from '#functions/runtime/composition.ts';

export const handler = async (_event: unknown, context: Context): Promise<{ readonly nextDueAt?: number }> => {
  const { peerings, tenants } = compositionOf(context).control;
  const swept = await peerings.sweep();
  await tenants.deletion.sweep();
  return swept;
};
