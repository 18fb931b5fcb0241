import { describe, expect, test } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { type GuestRules, safeRules } from '../guests/decide.ts';
import { guestClaimPatch, validateGuestClaim } from './guest-claim.ts';

const claim = (spec: object = {}, metadata: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'shop-rome', name: 'data', ...metadata },
    spec: { storageClassName: 'fast', ...spec },
  }) as PersistentVolumeClaim;
const marked = { labels: { 'isthmus.dev/guest': 'rome' }, finalizers: ['isthmus.dev/guest-claim'] };
const judge = (after: PersistentVolumeClaim, before?: PersistentVolumeClaim, rules: GuestRules = safeRules) =>
  validateGuestClaim(after, before, ['fast'], rules);

describe("a guest's claim", () => {
  test('of an offered class is accepted', () => expect(judge(claim()).allowed).toBe(true));

  test.each([
    [claim({ storageClassName: 'gold' }), 'storage_class_not_offered', /"gold": accepted are fast/],
    [claim({ storageClassName: '' }), 'storage_class_not_offered', /"": accepted are fast/],
    [
      claim({}, { annotations: { 'volume.beta.kubernetes.io/storage-class': 'gold' } }),
      'sandbox_refused',
      /storage-class/,
    ],
    [claim({ volumeName: 'pv-of-another' }), 'sandbox_refused', /spec.volumeName is "pv-of-another"/],
    [claim({ selector: { matchLabels: { a: 'b' } } }), 'sandbox_refused', /spec.selector/],
    [claim({ volumeAttributesClassName: 'gold' }), 'sandbox_refused', /volumeAttributesClassName/],
    [
      claim({}, { annotations: { 'volume.kubernetes.io/selected-node': 'master' } }),
      'sandbox_refused',
      /selected-node/,
    ],
  ])('that asks for more is refused by field: %#', (after, code, message) => {
    expect(judge(after)).toMatchObject({ allowed: false, code, message: expect.stringMatching(message) });
  });

  test.each([
    [claim({ volumeName: 'pv-of-another' }, marked), claim({}, marked), /volumeName/],
    [claim({}, { ...marked, finalizers: [] }), claim({}, marked), /takes it off itself/],
    [claim({}, { ...marked, labels: { 'isthmus.dev/guest': 'oslo' } }), claim({}, marked), /immutable/],
    [
      claim({}, { ...marked, finalizers: [], deletionTimestamp: 'now' }),
      claim({}, { ...marked, deletionTimestamp: 'now' }),
      /takes it off/,
    ],
  ])('does not become what it may not be: %#', (after, before, message) => {
    expect(judge(after, before)).toMatchObject({ allowed: false, message: expect.stringMatching(message) });
  });

  test.each(['cas.openebs.io/config', 'trident.netapp.io/importOriginalName', 'nfs.io/storage-path'])(
    'gives no order to a provisioner by annotation %s, unless the provider says so',
    (key) => {
      const order = claim({}, { ...marked, annotations: { [key]: 'x' } });
      expect(judge(order)).toMatchObject({ allowed: false, code: 'sandbox_refused' });
      expect(judge(order, claim({}, marked))).toMatchObject({ allowed: false, message: expect.stringContaining(key) });
      expect(judge(order, order).allowed).toBe(true);
      expect(judge(order, undefined, { ...safeRules, annotations: [key] }).allowed).toBe(true);
    },
  );

  test('carries what Isthmus, Helm and kubectl write, for every list of guests.annotations', () => {
    const own = { 'isthmus.dev/claim': 'shop/data', 'isthmus.dev/data': 'delete' };
    expect(judge(claim({}, { annotations: own }), undefined, { ...safeRules, annotations: [] }).allowed).toBe(true);
    const usual = { note: 'x', 'meta.helm.sh/release-name': 'shop', 'kubectl.kubernetes.io/restartedAt': 'now' };
    expect(judge(claim({}, { annotations: { ...own, ...usual } })).allowed).toBe(true);
  });

  test('keeps a class that is no longer offered, and may grow', () => {
    const old = { storageClassName: 'gold', volumeName: 'pv' };
    expect(judge(claim({ ...old, resources: {} }, marked), claim(old, marked)).allowed).toBe(true);
  });

  test('is marked with its consumer, not with the one that it names', () => {
    const mine = claim({}, { labels: { a: 'b', 'isthmus.dev/guest': 'oslo' } });
    expect(guestClaimPatch(mine, 'rome')).toEqual([
      { op: 'add', path: '/metadata/labels', value: { a: 'b', 'isthmus.dev/guest': 'rome' } },
      { op: 'add', path: '/metadata/finalizers', value: ['isthmus.dev/guest-claim'] },
    ]);
    expect(guestClaimPatch(claim({}, marked), 'rome')).toEqual([]);
  });
});
