import { expect, test } from 'vitest';
import { codes } from '#shared/errors/codes.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { refusalOf } from './conditions.ts';

const spec = {
  id: 'pe_1',
  consumer: 'rome',
  provider: 'milan',
  resources: {},
  class: 'default',
  nonce: 'bm9uY2U=',
  createdAt: 0,
  requestedBy: 'api-key/ak_1',
};
const silent = { facts: openFacts, lastSeenAt: 0, offlineFrom: 1, left: false };
const refused = (code: string) => {
  const refusals = [{ object: 'Namespace//liqo-tenant-milan', code, message: 'waits for what milan announces' }];
  const observed = { peering: 'pe_1', role: 'consumer' as const, appliedRevision: 1, objects: [], refusals };
  return refusalOf(spec, { ...silent, observed }, silent);
};

test('what an agent tries again by itself is told as such, and with nothing to correct', () => {
  expect(refused('peer_unproven')).toMatchObject({
    transient: true,
    type: 'Authenticated',
    condition: {
      message: 'rome will try Namespace/liqo-tenant-milan again: waits for what milan announces',
      action: codes.peer_unproven.remedy,
    },
  });
});

test.each(['object_not_allowed', 'a_code_of_a_newer_agent'])('what needs a correction says where: %s', (code) => {
  expect(refused(code)).toMatchObject({
    transient: false,
    condition: {
      message: 'rome refuses Namespace/liqo-tenant-milan: waits for what milan announces',
      action: 'correct what the message names in rome, or unpeer',
    },
  });
});
