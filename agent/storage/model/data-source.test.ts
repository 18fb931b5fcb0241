import { expect, test } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { dataSourceOf, sourceKeyOf } from './data-source.ts';

const claim = (spec: object = {}): PersistentVolumeClaim =>
  ({ metadata: { namespace: 'shop', name: 'copy' }, spec }) as unknown as PersistentVolumeClaim;
const db = { kind: 'PersistentVolumeClaim', name: 'db' };
const snapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' };

test.each([
  { spec: {}, is: { kind: 'none' } },
  { spec: { dataSource: null, dataSourceRef: undefined }, is: { kind: 'none' } },
  { spec: { dataSource: db }, is: { kind: 'claim', field: 'spec.dataSource', name: 'db' } },
  { spec: { dataSource: db, dataSourceRef: db }, is: { kind: 'claim', field: 'spec.dataSource', name: 'db' } },
  { spec: { dataSourceRef: { ...db, apiGroup: '' } }, is: { kind: 'claim', field: 'spec.dataSourceRef', name: 'db' } },
  {
    spec: { dataSourceRef: { ...db, namespace: 'shop' } },
    is: { kind: 'claim', field: 'spec.dataSourceRef', name: 'db' },
  },
  {
    spec: { dataSourceRef: { ...db, namespace: 'bank' } },
    is: { kind: 'other', field: 'spec.dataSourceRef', says: 'PersistentVolumeClaim bank/db' },
  },
  { spec: { dataSource: snapshot }, is: { kind: 'snapshot', field: 'spec.dataSource', name: 'monday' } },
  { spec: { dataSourceRef: snapshot }, is: { kind: 'snapshot', field: 'spec.dataSourceRef', name: 'monday' } },
  {
    spec: { dataSource: { ...snapshot, apiGroup: 'a.example.com' } },
    is: { kind: 'other', field: 'spec.dataSource', says: 'VolumeSnapshot monday' },
  },
  {
    spec: { dataSource: { ...db, apiGroup: 'a.example.com' } },
    is: { kind: 'other', field: 'spec.dataSource', says: 'PersistentVolumeClaim db' },
  },
  {
    spec: { dataSource: { ...db, name: '..' } },
    is: { kind: 'other', field: 'spec.dataSource', says: 'PersistentVolumeClaim ..' },
  },
  {
    spec: { dataSource: db, dataSourceRef: snapshot },
    is: { kind: 'other', field: 'spec.dataSourceRef', says: 'VolumeSnapshot monday' },
  },
  {
    spec: { dataSource: db, dataSourceRef: { ...db, name: 'other' } },
    is: { kind: 'other', field: 'spec.dataSourceRef', says: 'PersistentVolumeClaim other' },
  },
])('a claim with $spec begins with $is', ({ spec, is }) => {
  const found = claim(spec);
  expect(dataSourceOf(found)).toEqual(is);
  expect(sourceKeyOf(found)).toBe(is.kind === 'claim' ? 'shop/db' : undefined);
});
