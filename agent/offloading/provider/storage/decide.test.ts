import { describe, expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { decideClaim, decideRecord, recordOf } from './decide.ts';

const nowMs = Date.UTC(2026, 0, 1);
const keepMs = 86_400_000;
const home = { 'isthmus.dev/claim': 'shop/data', 'isthmus.dev/claim-uid': 'home-uid' };
const claim = (annotations: Record<string, string> = {}, deleted = true): PersistentVolumeClaim =>
  ({
    metadata: {
      namespace: 'shop-rome',
      name: 'data',
      uid: 'uid',
      finalizers: ['isthmus.dev/guest-claim'],
      annotations: { ...home, ...annotations },
      ...(deleted && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    spec: { volumeName: 'pv' },
  }) as unknown as PersistentVolumeClaim;
const volume = (spec: object = {}, metadata: object = {}): PersistentVolume =>
  ({
    metadata: { name: 'pv', uid: 'pv-uid', resourceVersion: '7', ...metadata },
    spec: {
      persistentVolumeReclaimPolicy: 'Delete',
      capacity: { storage: '1Gi' },
      storageClassName: 'fast',
      accessModes: ['ReadWriteOnce'],
      claimRef: { namespace: 'shop-rome', name: 'data', uid: 'uid' },
      ...spec,
    },
  }) as unknown as PersistentVolume;
const end = (of: PersistentVolumeClaim, its: PersistentVolume | undefined = volume()) =>
  decideClaim({ claim: of, consumer: 'rome', volume: its, keepMs, nowMs });
/** As the API server would apply it: labels and annotations merged, null removed. */
function patched(before: PersistentVolume, patch: unknown): PersistentVolume {
  const merge = (a: unknown, b: unknown): unknown => {
    if (typeof b !== 'object' || b === null || Array.isArray(b)) return b;
    const out: Record<string, unknown> = { ...(a as object) };
    for (const [key, value] of Object.entries(b)) {
      if (value === null) delete out[key];
      else if (value !== undefined) out[key] = merge(out[key], value);
    }
    return out;
  };
  return merge(before, patch) as PersistentVolume;
}
const keptVolume = (spec: object = {}): PersistentVolume => {
  const decision = end(claim());
  if (decision.do !== 'keep') throw new Error(decision.do);
  return patched(patched(volume(), decision.first), { spec });
};

describe('a claim that ends', () => {
  test('leaves its data, in one write that says whose it is', () => {
    expect(recordOf(keptVolume()).spec).toEqual({
      consumer: 'rome',
      claim: { namespace: 'shop', name: 'data', uid: 'home-uid' },
      remoteClaim: { namespace: 'shop-rome', name: 'data', uid: 'uid' },
      size: '1Gi',
      storageClassName: 'fast',
      volumeMode: 'Filesystem',
      accessModes: ['ReadWriteOnce'],
      keptSince: '2026-01-01T00:00:00Z',
      expiresAt: '2026-01-02T00:00:00Z',
    });
    expect(keptVolume().spec?.persistentVolumeReclaimPolicy).toBe('Retain');
  });

  test('leaves a volume whose reservation Kubernetes does not clear for claims of others', () => {
    const annotations = { 'pv.kubernetes.io/bound-by-controller': 'yes' };
    const { first } = end(claim(), volume({}, { annotations })) as { first: object };
    expect(patched(volume({}, { annotations }), first).metadata.annotations).not.toHaveProperty([
      'pv.kubernetes.io/bound-by-controller',
    ]);
  });

  test('takes its data along only by the order of a consumer that does not retain it, and where the class deletes', () => {
    const ordered = { 'isthmus.dev/data': 'delete' };
    expect(end(claim(ordered))).toEqual({ do: 'release', dataGoes: true });
    expect(end(claim({ ...ordered, 'isthmus.dev/reclaim-policy': 'Retain' })).do).toBe('keep');
    expect(end(claim(ordered), volume({ persistentVolumeReclaimPolicy: 'Retain' })).do).toBe('keep');
    expect(end(claim({ 'isthmus.dev/data': 'yes' })).do).toBe('keep');
  });

  test('goes at once without a volume, or when the volume is not its own', () => {
    expect(decideClaim({ claim: claim(), consumer: 'rome', volume: undefined, keepMs, nowMs })).toEqual({
      do: 'release',
    });
    expect(end(claim(), volume({ claimRef: { uid: 'another' } }))).toEqual({ do: 'release' });
    expect(end({ ...claim({ 'isthmus.dev/data': 'delete' }), spec: { volumeName: 'another' } })).toEqual({
      do: 'release',
    });
  });

  test('that lives without its finalizer, as after an uninstallation, gets that before its volume may be deleted again', () => {
    const lives = claim({}, false);
    const unguarded = { ...lives, metadata: { ...lives.metadata, finalizers: [] } };
    expect(end(unguarded, keptVolume())).toEqual({ do: 'guard' });
    expect(end(lives, keptVolume()).do).toBe('mark');
  });

  test('is continued where a process died: the volume is not written twice', () => {
    expect(end(claim(), keptVolume())).toEqual({ do: 'keep' });
  });

  test('gets an order that came late obeyed, with the volume as it was', () => {
    const decision = end(claim({ 'isthmus.dev/data': 'delete' }), keptVolume());
    expect(decision.do).toBe('release');
    expect(patched(keptVolume(), (decision as { first: object }).first)).toMatchObject({
      spec: { persistentVolumeReclaimPolicy: 'Delete' },
      metadata: { labels: {}, annotations: {} },
    });
  });
});

describe('a kept volume', () => {
  const record = (spec: object = {}) => {
    const made = recordOf(keptVolume());
    return { ...made, spec: { ...made.spec, ...spec } };
  };
  const look = (of: object) =>
    decideRecord({ record: record(), volume: keptVolume(), holder: 'none', isGuarded: false, nowMs, ...of });

  test('has a record, which comes back when it is deleted', () => {
    expect(look({ record: undefined })).toEqual({ create: record() });
    expect(look({})).toEqual({ status: { phase: 'Kept' }, lookAgainMs: keepMs });
  });

  test('is not deleted when its time has passed', () => {
    const passed = look({ nowMs: nowMs + 2 * keepMs });
    expect(passed.status?.phase).toBe('Expired');
    expect(passed.volume).toBeUndefined();
  });

  test('is deleted when it is discarded, as released by the claim that had it', () => {
    expect(look({ record: record({ discard: true }) })).toMatchObject({
      volume: { spec: { persistentVolumeReclaimPolicy: 'Delete', claimRef: { uid: 'uid' } } },
      status: { phase: 'Discarding' },
    });
    expect(look({ record: record({ discard: true }), volume: undefined })).toEqual({ remove: true });
  });

  test('that was deleted by hand is told as lost', () => {
    expect(look({ volume: undefined }).status?.phase).toBe('Lost');
  });

  test('is reserved for the claim that adopts it, then free of its marks', () => {
    const adopting = record({ adopt: { namespace: 'rescue', claim: 'data' } });
    expect(look({ record: adopting })).toMatchObject({
      volume: { spec: { claimRef: { namespace: 'rescue', name: 'data', uid: null } } },
      status: { phase: 'Adopting' },
    });
    const bound = patched(keptVolume({ claimRef: { namespace: 'rescue', name: 'data', uid: 'new' } }), {
      status: { phase: 'Bound' },
    });
    expect(look({ record: adopting, volume: bound, holder: 'other' })).toMatchObject({
      volume: {
        spec: { persistentVolumeReclaimPolicy: 'Retain' },
        metadata: { labels: { 'isthmus.dev/kept-for': null } },
      },
    });
  });

  test('is looked at again while a claim is being bound to it, whose end may write nothing to it', () => {
    const tied = patched(keptVolume({ claimRef: { namespace: 'rescue', name: 'data', uid: 'new' } }), {
      status: { phase: 'Released' },
    });
    const adopting = record({ adopt: { namespace: 'rescue', claim: 'data' } });
    expect(look({ record: adopting, volume: tied, holder: 'other' })).toMatchObject({
      status: { phase: 'Adopting' },
      lookAgainMs: 5_000,
    });
    expect(look({ record: adopting, volume: tied, holder: 'none' })).toMatchObject({
      volume: { metadata: { annotations: { 'isthmus.dev/kept-claim': expect.stringContaining('"uid":"new"') } } },
    });
  });

  test("is as it was when it has no more than the name of a guest's claim that is gone: that one was never bound to it", () => {
    for (const status of [{}, { phase: 'Bound' }, { phase: 'Released' }]) {
      const named = patched(keptVolume(), { spec: { claimRef: { uid: 'later' } }, status });
      const adopting = record({ adopt: { namespace: 'shop-rome', claim: 'data' } });
      expect(look({ record: adopting, volume: named, isGuarded: true })).toMatchObject({
        volume: { spec: { claimRef: { namespace: 'shop-rome', name: 'data', uid: null } } },
        status: { phase: 'Adopting' },
      });
      expect(look({ volume: named, isGuarded: true })).toMatchObject({
        volume: { spec: { claimRef: { uid: 'uid' } } },
        status: { phase: 'Kept' },
      });
    }
  });

  test('is kept after the end of the claim that it names where claims may go unmarked, in the namespace of before, too', () => {
    const named = patched(keptVolume(), { spec: { claimRef: { uid: 'later' } }, status: { phase: 'Released' } });
    const adopting = record({ adopt: { namespace: 'shop-rome', claim: 'data' } });
    const { metadata } = look({ record: adopting, volume: named }).volume as { metadata: object };
    expect(metadata).toMatchObject({
      annotations: { 'isthmus.dev/kept-claim': expect.stringContaining('"uid":"later"') },
    });
  });

  test('is written only as it was read', () => {
    const asRead = { uid: 'pv-uid', resourceVersion: '7' };
    const adopting = record({ adopt: { namespace: 'rescue', claim: 'data' } });
    const tied = keptVolume({ claimRef: { namespace: 'rescue', name: 'data', uid: 'new' } });
    for (const written of [
      look({ record: adopting }).volume,
      look({ record: record({ discard: true }) }).volume,
      look({ volume: tied }).volume,
      look({ volume: patched(tied, { status: { phase: 'Bound' } }), holder: 'other' }).volume,
      look({ volume: patched(keptVolume(), { spec: { claimRef: { uid: null } } }) }).volume,
      (end(claim()) as { first: unknown }).first,
      (end(claim({ 'isthmus.dev/data': 'delete' }), keptVolume()) as { first: unknown }).first,
    ])
      expect(written).toMatchObject({ metadata: asRead });
  });

  test('is reserved for no other claim, and not discarded, while one has it or is being bound', () => {
    const bound = patched(keptVolume({ claimRef: { namespace: 'shop-rome', name: 'data', uid: 'new' } }), {
      status: { phase: 'Bound' },
    });
    const adopting = record({ adopt: { namespace: 'rescue', claim: 'data' } });
    expect(look({ record: adopting, volume: bound, holder: 'guest' }).volume).toBeUndefined();
    const discarding = record({ discard: true });
    expect(look({ record: discarding, volume: bound, holder: 'guest' }).volume).toBeUndefined();
    // The claim that had it still has it: nothing of it has been told to go yet.
    const before = patched(keptVolume(), { status: { phase: 'Bound' } });
    expect(look({ record: adopting, volume: before, holder: 'guest' }).volume).toBeUndefined();
    expect(look({ record: discarding, volume: before, holder: 'guest' }).volume).toBeUndefined();
    const tied = keptVolume({ claimRef: { namespace: 'shop-rome', name: 'data', uid: 'new' } });
    for (const holder of ['guest', 'other'] as const)
      expect(look({ record: adopting, volume: tied, holder }).volume).toBeUndefined();
  });

  test('whose next claim ends as well says the end of that one, and an order of before is over', () => {
    const later = { ...claim(), metadata: { ...claim().metadata, uid: 'later' } };
    const tied = patched(keptVolume(), { spec: { claimRef: { uid: 'later' } } });
    const decision = end(later, tied);
    expect(decision.do).toBe('keep');
    const kept = patched(tied, (decision as { first: object }).first);
    expect(recordOf(kept).spec.remoteClaim.uid).toBe('later');
    const adopting = record({ adopt: { namespace: 'shop-rome', claim: 'data' } });
    expect(look({ record: adopting, volume: kept })).toEqual({ replace: recordOf(kept).spec });
  });

  test('that a claim of a guest is not yet published with stays kept', () => {
    const open = claim({ 'isthmus.dev/unpublished': 'rome' }, false);
    expect(end(open, keptVolume())).toEqual({ do: 'nothing' });
    const bound = patched(keptVolume({ claimRef: { uid: 'new' } }), { status: { phase: 'Bound' } });
    expect(look({ volume: bound, holder: 'guest' })).toEqual({ status: { phase: 'Kept' }, lookAgainMs: keepMs });
  });

  test('that a claim of a guest has again gets its policy back, and its record goes', () => {
    const again = decideClaim({ claim: claim({}, false), consumer: 'rome', volume: keptVolume(), keepMs, nowMs });
    expect(again).toMatchObject({ do: 'mark', first: { spec: { persistentVolumeReclaimPolicy: 'Delete' } } });
    expect(look({ volume: patched(keptVolume(), (again as { first: object }).first) })).toEqual({ remove: true });
  });
});
