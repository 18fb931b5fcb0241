import { expect, test } from 'vitest';
import { withCredentials, withoutCredentials } from './status.ts';

const now = '2026-01-02T00:00:00Z';
const inBand = {
  type: 'InBandToken',
  status: 'False' as const,
  reason: 'NoToken',
  message: 'm',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};
const granted = { tenantNamespace: 'liqo-tenant-rome', authParams: { ca: 'Y2E=', apiServer: 'https://192.0.2.1' } };
const refusal = { reason: 'InvalidCSR', message: 'the CSR names another cluster' };

test('with new credentials the failure of the handshake goes, and what others say stays', () => {
  const failed = withoutCredentials({ ...granted, conditions: [inBand] }, refusal, now);
  expect(failed.conditions).toEqual([
    inBand,
    { type: 'Handshake', status: 'False', ...refusal, lastTransitionTime: now },
  ]);
  expect(failed).not.toHaveProperty('authParams');
  expect(withCredentials(failed, granted)).toEqual({ ...granted, conditions: [inBand] });
  expect(withCredentials(undefined, granted)).toEqual(granted);
});

test('a failure that stays keeps its time, also with another reason', () => {
  const failed = withoutCredentials(undefined, refusal, now);
  expect(withoutCredentials(failed, refusal, '2026-01-03T00:00:00Z')).toEqual(failed);
  const other = withoutCredentials(failed, { reason: 'KeyChanged', message: 'm' }, '2026-01-03T00:00:00Z');
  expect(other.conditions).toMatchObject([{ reason: 'KeyChanged', lastTransitionTime: now }]);
});
