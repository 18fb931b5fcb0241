import { expect, test } from 'vitest';
import { validateGuestService } from './service.ts';

test.each([
  { what: 'no external addresses', spec: { clusterIP: '10.0.0.1' }, allowed: true },
  { what: 'an empty list of them', spec: { externalIPs: [] }, allowed: true },
  { what: 'a foreign address', spec: { externalIPs: ['192.0.2.1'] }, allowed: false },
  { what: 'something else in their place', spec: { externalIPs: '192.0.2.1' }, allowed: false },
])('a Service of a guest with $what is judged', ({ spec, allowed }) => {
  expect(validateGuestService({ spec })).toMatchObject({ allowed });
});
