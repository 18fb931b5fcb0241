/** Asking for the end of a peering, and for one that does not wait for a cluster that is gone. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Principal } from '../../access/caller.ts';
import { traced } from '../../audit/record.ts';
import type { ControlDeps } from '../../model/deps.ts';
import type { PeeringRecord, PeeringSpec, SideInput } from '../../model/peering-records.ts';
import type { UnpeerOptions } from '../../model/peering-requests.ts';
import type { Item } from '../../ports/store.ts';
import { key } from '../../store/keys.ts';
import { loadPeering } from '../coordinator/load.ts';
import { hasEnded, isEnding } from '../core/ended.ts';
import { auditBoth, eventBoth } from '../cross-tenant/audit-both.ts';
import { copyOps, homeOf, loadCopies, sideOf, tenantsOf } from '../cross-tenant/copies.ts';
import { isSilent } from '../state-machine/removal.ts';

type Deps = Pick<ControlDeps, 'store' | 'clock' | 'ids'>;

export async function requestUnpeer(
  deps: Deps,
  actor: Principal,
  id: string,
  { ifVersion, force = false }: UnpeerOptions,
  signal?: AbortSignal,
): Promise<void> {
  const { store, clock } = deps;
  const at = key.peering(actor.tenant, id);
  const item = await store.get<PeeringRecord>(at.pk, at.sk, signal);
  if (!item) throw new AppError('not_found', `there is no peering ${JSON.stringify(id)}`, { detail: { peering: id } });
  if (ifVersion !== undefined && ifVersion !== item.version) {
    throw new AppError(
      'precondition_failed',
      `peering ${id} is at version ${item.version}, the request expects ${ifVersion}`,
      { detail: { expected: ifVersion, found: item.version } },
    );
  }
  const { across } = item.value.spec;
  const home = across ? homeOf(actor.tenant, item.value.spec) : at;
  const truth = across ? await store.get<PeeringRecord>(home.pk, home.sk, signal) : item;
  if (!truth) return;
  const requested = isEnding(truth.value);
  const mustForce = force && truth.value.spec.forcedAt === undefined && !hasEnded(truth.value);
  if (mustForce) await mustBeSilent(deps, actor.tenant, id, signal);
  if (requested && !mustForce) return;
  const { spec, state } = truth.value;
  const side = sideOf(actor.tenant, spec);
  const now = clock.now();
  const next: PeeringSpec = {
    ...spec,
    ...traced(actor),
    ...(requested ? {} : { unpeerRequestedAt: now, ...(side ? { unpeerRequestedBy: side } : {}) }),
    ...(mustForce ? { forcedAt: now } : {}),
  };
  const value: PeeringRecord = { spec: next, state };
  const copies = await loadCopies(store, spec, signal);
  const changed = ifVersion !== undefined && side !== undefined && copies[side]?.version !== ifVersion;
  if (changed) throw new AppError('version_conflict', `peering ${id} changed meanwhile`);
  const about = { subject: `peering/${id}`, data: { consumer: spec.consumer, provider: spec.provider } };
  const tenants = tenantsOf(actor.tenant, spec);
  await store.transact(
    [
      { op: 'update', ...home, value, ifVersion: (truth as Item).version },
      ...copyOps(value, copies),
      ...auditBoth(deps, actor, tenants, {
        action: mustForce ? 'peering.force-unpeer' : 'peering.unpeer',
        subject: about.subject,
        before: { phase: state.phase },
      }),
    ],
    requested ? [] : eventBoth(deps, tenants, 'peering.unpeer-requested', about),
    signal,
  );
}

/** The first of two looks; the second is the state machine's. */
async function mustBeSilent(deps: Deps, tenant: string, id: string, signal?: AbortSignal): Promise<void> {
  const loaded = await loadPeering(deps.store, tenant, id, signal);
  if (!loaded) return;
  const now = deps.clock.now();
  const sides: readonly (readonly [string, SideInput])[] = [loaded.consumer, loaded.provider].map((one) => [
    one.clusterId,
    one.input,
  ]);
  if (sides.some(([, side]) => isSilent(side, now))) return;
  const heard = sides
    .map(([name, { lastSeenAt }]) => `${name} was heard ${Math.round((now - lastSeenAt) / 1_000)} s ago`)
    .join(', ');
  throw new AppError('peer_alive', `neither cluster is gone: ${heard}`, {
    detail: { peering: id, remedy: 'unpeer without --force: the end always comes, after 50 s at the latest' },
  });
}
