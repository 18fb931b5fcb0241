/** Schedule: looks at every peering whose time has come and goes on with deletions of tenants, says which webhooks have something due, which bounds what a lost event can cost. */
import type { Context } from 'aws-lambda';
import { compositionOf } from '#functions/runtime/composition.ts';
import { deadlineSignal } from '#functions/runtime/deadline.ts';

export const handler = async (_event: unknown, context: Context): Promise<{ readonly nextDueAt?: number }> => {
  const { control } = compositionOf(context);
  const signal = deadlineSignal(context);
  const swept = await control.peerings.sweep(signal);
  await control.tenants.deletion.sweep(signal);
  await control.webhooks.deliverer?.announce(signal);
  return swept;
};
