/** A slice that the provider's administrator cordons or drains: what its copy here says, and how a drain ends. */

import { hurriedGrace } from '#agent/model/forced-end.ts';
import { sliceUser } from '#agent/model/peer-user.ts';
import { creatorOf } from '#agent/model/shadow-pod-creator.ts';
import { isCordoned } from '#agent/model/slice-roles.ts';
import type { Cluster } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome } from '#shared/domain/outcome.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { ResourceSlice } from '#shared/schema/liqo/resource-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';

/** Why new pods are refused; undefined when they are not. */
export function cordonOf(slice: ResourceSlice, tenant: Tenant): string | undefined {
  if (tenant.spec.tenantCondition === 'Cordoned') return 'the provider has this consumer cordoned: no new pods for now';
  if (drainOf(slice) !== undefined) return 'the provider drains this slice';
  return isCordoned(slice) ? 'the provider has this slice cordoned: no new pods for now' : undefined;
}

/** When the drain of a slice ends by force; `Infinity` for never, undefined for no drain. */
export function drainOf({ metadata }: ResourceSlice): number | undefined {
  const text = metadata.annotations?.[isthmusAnnotation.drain];
  if (text === undefined || ['', 'false', 'False', '0'].includes(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? Number.POSITIVE_INFINITY : at;
}

const lookMs = 10_000;

/** Undefined: nothing to wait for. The consumer empties its node itself; what is still here at the deadline is deleted, and not waited for. */
export async function endDrain(
  { api, clock, events }: Pick<Cluster, 'api' | 'events'> & { readonly clock: Clock },
  slice: ResourceSlice,
  consumer: string,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const deadline = drainOf(slice);
  if (deadline === undefined || deadline === Number.POSITIVE_INFINITY) return undefined;
  const waitMs = deadline - clock.now();
  if (waitMs > 0) return again(waitMs);
  const labelSelector = `${label.creatorUser}=${creatorOf(sliceUser(slice.metadata.name, consumer))}`;
  const left = await api.list(shadowPods, { labelSelector }, signal);
  const running = await api.list(pods, { labelSelector }, signal);
  if (left.length + running.length === 0) return undefined;
  for (const shadow of left) {
    if (shadow.metadata.deletionTimestamp === undefined) await api.delete(shadowPods, refOf(shadow), {}, signal);
  }
  for (const pod of running) {
    const gracePeriodSeconds = hurriedGrace(pod, deadline, clock.now());
    if (gracePeriodSeconds === undefined) continue;
    const { uid } = pod.metadata;
    await api.delete(pods, refOf(pod), { gracePeriodSeconds, ...(uid && { uid }) }, signal);
  }
  const count = Math.max(left.length, running.length);
  events.emit(slice, 'Warning', 'Drained', `the deadline of the drain has passed: ${count} pods are deleted`);
  return again(lookMs);
}
