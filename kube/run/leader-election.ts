/** Leader election on a Lease: one holder at a time, which stops before another candidate may begin. */
import { abortScope, sharedByMany } from '#shared/async/abort-scope.ts';
import { watchdog } from '#shared/async/idle-timeout.ts';
import { leases } from '#shared/domain/core-kinds.ts';
import type { Lease } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { Cache, Caches, KubeApi } from '../model/types.ts';
import { isChangedOrGone } from '../writes/changed-or-gone.ts';
import { microTime } from './event-recorder.ts';

export interface LeaseDeps {
  readonly api: KubeApi;
  /** When given, a candidate notices a release at once instead of at its next poll. */
  readonly caches?: Caches;
  readonly clock: Clock;
  readonly log: Log;
}

export interface LeaseOptions {
  readonly namespace: string;
  readonly name: string;
  /** Unique per process, else two leaders take each other for themselves. */
  readonly identity: string;
  /** How long others respect a holder that has gone silent. */
  readonly durationMs?: number;
  /** The holder steps down when it could not renew for so long; must be less than `durationMs`. */
  readonly renewDeadlineMs?: number;
  readonly retryMs?: number;
  /** True only of a holder whose process has ended for certain: its lease is taken at once. Default: false. */
  readonly hasEnded?: (holder: string) => boolean;
}

type Timing = Required<LeaseOptions>;

/** The lease as the server answered our last write, and when that write was sent. */
interface WrittenLease {
  readonly lease: Lease;
  readonly at: number;
}

/** What was last seen of another holder, by our own clock: the clocks of two machines are never compared. */
interface Sighting {
  readonly version: string | undefined;
  readonly at: number;
}

/**
 * Waits for leadership, runs `work`, and waits again whenever leadership was lost. `work`'s signal aborts on loss and on shutdown; only
 * after `work` has ended is the lease released. Returns when `signal` aborts or `work` returns by itself; rejects when `work` fails.
 */
export async function runAsLeader(
  deps: LeaseDeps,
  options: LeaseOptions,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const timing: Timing = {
    durationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryMs: 2_000,
    hasEnded: () => false,
    ...options,
  };
  sharedByMany(signal);
  const log = deps.log.with({ lease: `${timing.namespace}/${timing.name}`, identity: timing.identity });
  while (!signal.aborted) {
    const acquired = await acquire({ ...deps, log }, timing, signal);
    if (acquired === undefined) return;
    log.info('leading');
    const term = abortScope(signal);
    const holding = abortScope(signal);
    let lost = false;
    const renewing = renew({ ...deps, log }, timing, holding.signal, acquired).then((written) => {
      lost = !written;
      if (lost) term.abort(new Error('leadership lost'));
    });
    try {
      await work(term.signal);
      if (!term.signal.aborted) return;
    } catch (error) {
      if (!term.signal.aborted) throw error;
    } finally {
      holding.abort();
      await renewing;
      if (!lost) await release({ ...deps, log }, timing);
      term.unlink();
      holding.unlink();
    }
  }
}

/** Undefined: aborted. */
async function acquire(deps: LeaseDeps, timing: Timing, signal: AbortSignal): Promise<WrittenLease | undefined> {
  const looking = abortScope(signal);
  let nap = abortScope(signal);
  const cache: Cache<Lease> | undefined = deps.caches?.scoped(
    leases,
    { namespace: timing.namespace, fieldSelector: `metadata.name=${timing.name}` },
    looking.signal,
  );
  cache?.subscribe(({ after }) => {
    if (after === undefined || isFree(after)) nap.abort();
  });
  let sighting: Sighting = { version: undefined, at: deps.clock.now() };
  let lastVersion: string | undefined;
  /** What was logged last, so that a lasting failure is told once. */
  let failure: string | undefined;
  /** A holder that renews shows in the watch; a silent watch may be a dead one, and proves nothing. */
  function look(): Promise<Lease | undefined> {
    const { namespace, name } = timing;
    const shown = cache?.get({ namespace, name });
    const version = shown?.metadata.resourceVersion;
    if (shown === undefined || version === lastVersion) return deps.api.get(leases, { namespace, name }, signal);
    lastVersion = version;
    return Promise.resolve(shown);
  }
  try {
    while (!signal.aborted) {
      try {
        const at = deps.clock.now();
        const seen = await tryAcquire(deps, timing, sighting, await look(), signal);
        if ('lease' in seen) {
          if (deps.clock.now() - at < timing.renewDeadlineMs) return { ...seen, at };
          // It took so long that others may soon take it: it is renewed before any work begins, which would have to end at once.
          continue;
        }
        sighting = seen;
        failure = undefined;
      } catch (error) {
        if (signal.aborted) return undefined;
        const code = codeOf(error) ?? 'unknown';
        const why = messageOf(error);
        if (code !== failure) deps.log.warn('cannot look at the lease', { code, error: why });
        failure = code;
      }
      await deps.clock.sleep(timing.retryMs, nap.signal).catch(() => undefined);
      nap.unlink();
      nap = abortScope(signal);
    }
    return undefined;
  } finally {
    looking.abort();
    looking.unlink();
    nap.unlink();
  }
}

const isFree = (lease: Lease): boolean => !lease.spec?.holderIdentity;

async function tryAcquire(
  { api, clock }: LeaseDeps,
  timing: Timing,
  sighting: Sighting,
  found: Lease | undefined,
  signal: AbortSignal,
): Promise<Pick<WrittenLease, 'lease'> | Sighting> {
  const { namespace, name } = timing;
  const now = clock.now();
  if (found === undefined) {
    const metadata = { namespace, name };
    const spec = { ...written(timing, now), leaseTransitions: 0, acquireTime: microTime(now) };
    return won(
      api.create(leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }, {}, signal),
      sighting,
    );
  }
  const version = found.metadata.resourceVersion;
  const seen: Sighting = sighting.version === version ? sighting : { version, at: now };
  const respectMs = (found.spec?.leaseDurationSeconds ?? timing.durationMs / 1000) * 1000;
  if (isRespected(timing, found) && now - seen.at < respectMs) return seen;
  const spec = {
    ...found.spec,
    ...written(timing, now),
    acquireTime: microTime(now),
    leaseTransitions: (found.spec?.leaseTransitions ?? 0) + 1,
  };
  return won(api.update(leases, { ...found, spec }, {}, signal), seen);
}

/** The lease of another holder that may be alive. */
function isRespected({ identity, hasEnded }: Timing, { spec }: Lease): boolean {
  const holder = spec?.holderIdentity;
  return Boolean(holder) && holder !== identity && !hasEnded(holder ?? '');
}

/** Losing the race for a write is no failure: look again later. */
async function won(write: Promise<Lease>, seen: Sighting): Promise<Pick<WrittenLease, 'lease'> | Sighting> {
  try {
    return { lease: await write };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'kube_conflict' || code === 'kube_already_exists') return seen;
    throw error;
  }
}

const written = ({ identity, durationMs }: Timing, now: number) => ({
  holderIdentity: identity,
  leaseDurationSeconds: Math.ceil(durationMs / 1000),
  renewTime: microTime(now),
});

/** False as soon as leadership is lost; true when aborted while still holding it. */
async function renew(deps: LeaseDeps, timing: Timing, signal: AbortSignal, acquired: WrittenLease): Promise<boolean> {
  const { clock, log } = deps;
  let renewedAt = acquired.at;
  let known: Lease | undefined = acquired.lease;
  for (;;) {
    const untilLost = renewedAt + timing.renewDeadlineMs - clock.now();
    if (untilLost <= 0) {
      log.warn('stepping down: the lease could not be renewed in time', { renewDeadlineMs: timing.renewDeadlineMs });
      return false;
    }
    await clock.sleep(Math.min(timing.retryMs, untilLost), signal).catch(() => undefined);
    if (signal.aborted) return true;
    const at = clock.now();
    const outcome = await renewOnce(deps, timing, renewedAt + timing.renewDeadlineMs - at, signal, known);
    if (signal.aborted) return outcome !== 'lost';
    if (outcome === 'lost') {
      log.warn('stepping down: another holder has the lease');
      return false;
    }
    if (outcome !== undefined) renewedAt = at;
    known = outcome;
  }
}

/** Maps to undefined when another client changed or deleted the lease. */
function unlessChanged(error: unknown): undefined {
  if (!isChangedOrGone(error)) throw error;
  return undefined;
}

/** The lease as it is now; undefined when that did not work. Without `known` it looks first. */
async function renewOnce(
  { api, clock, log }: LeaseDeps,
  timing: Timing,
  withinMs: number,
  signal: AbortSignal,
  known: Lease | undefined,
): Promise<Lease | 'lost' | undefined> {
  // The request may take longer than we may lead; the deadline must not wait for it.
  const late = abortScope(signal);
  const limit = { idleMs: Math.max(1, withinMs) };
  const guard = watchdog(clock, limit, () => late.abort(new Error('too late')));
  try {
    const extend = (lease: Lease): Promise<Lease> =>
      api.update(leases, { ...lease, spec: { ...lease.spec, ...written(timing, clock.now()) } }, {}, late.signal);
    if (known !== undefined) {
      // A conditional write of the last known version: no read is needed first.
      const renewed = await extend(known).catch(unlessChanged);
      if (renewed !== undefined) return renewed;
    }
    const found = await api.get(leases, { namespace: timing.namespace, name: timing.name }, late.signal);
    if (found === undefined || found.spec?.holderIdentity !== timing.identity) return 'lost';
    return await extend(found);
  } catch (error) {
    if (!signal.aborted) log.debug('could not renew the lease', { code: codeOf(error) });
    return undefined;
  } finally {
    guard.stop();
    late.unlink();
  }
}

/** Empties the holder, so that a successor starts at once. Best effort: otherwise the lease runs out by itself. */
async function release({ api, clock, log }: LeaseDeps, timing: Timing): Promise<void> {
  try {
    const found = await api.get(leases, { namespace: timing.namespace, name: timing.name });
    if (found?.spec?.holderIdentity !== timing.identity) return;
    const spec = { ...found.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.now()) };
    await api.update(leases, { ...found, spec });
    log.info('released the lease');
  } catch (error) {
    log.warn('could not release the lease', { code: codeOf(error) });
  }
}
