/** Schedule: looks at everything whose time has come, goes on with deletions of tenants, says which webhooks have something due: it bounds what a lost event can cost. */
import type { Context } from 'aws-lambda';
import { compositionOf } from '#functions/runtime/composition.ts';
import { deadlineSignal } from '#functions/runtime/deadline.ts';

/** For writing down where it stopped, when there was more to do than time. */
const reserveMs = 2_000;

export const handler = async (_event: unknown, context: Context): Promise<{ readonly nextDueAt?: number }> => {
  const { control, log } = compositionOf(context);
  const signal = deadlineSignal(context, reserveMs);
  // Side by side: much work of one kind must not take all the time of the others.
  const looks = control.peerings.sweep(signal);
  const all = [looks, control.tenants.deletion.sweep(signal), control.webhooks.deliverer?.announce(signal)];
  for (const outcome of await Promise.allSettled(all)) if (outcome.status === 'rejected') throw outcome.reason;
  const { unfinished, ...due } = await looks;
  if (unfinished) log.warn('the sweep ran out of time; the next one goes on where it stopped');
  return due;
};
