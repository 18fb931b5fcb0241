import { describe, expect, test } from 'vitest';
import { decide } from '../decide.ts';
import type { ClusterFacts, DoctorFacts } from '../facts.ts';
import { asked } from './broker.ts';

const condition = (type: string, side: 'consumer' | 'provider' | 'both', status: 'True' | 'False' | 'Unknown') => ({
  type,
  side,
  status,
  reason: 'R',
  message: `m of ${type}`,
  since: '2026-11-23T12:00:00Z',
  action: `do ${type}`,
});
const said = (phase: string | undefined, conditions: readonly ReturnType<typeof condition>[]): DoctorFacts => ({
  now: 0,
  clusters: [],
  broker: { url: 'https://b', pair: ['rome', 'milan'], ...(phase && { phase }), conditions },
});

describe('by the broker alone, the doctor names', () => {
  test.each([
    ['nothing in a peering that is well', said('Ready', [condition('NodeReady', 'consumer', 'True')]), []],
    ['a peering that is not there', said(undefined, []), [{ code: 'not_peered', at: 'rome' }]],
    [
      'an agent that is not heard, before what hangs on it',
      said('Degraded', [
        condition('NodeReady', 'consumer', 'Unknown'),
        condition('ProviderOnline', 'provider', 'False'),
      ]),
      [{ code: 'agent_unheard', at: 'milan', todo: 'do ProviderOnline' }],
    ],
    [
      'what is missing at one end',
      said('Authenticating', [condition('Authenticated', 'provider', 'False')]),
      [{ code: 'peering_waits', at: 'milan', text: expect.stringContaining('rome -> milan') }],
    ],
  ])('%s', (_title, facts, findings) => {
    expect(decide(facts)).toMatchObject(findings);
  });
});

test('a tenant that is suspended is a refusal, also before an agent has met it', () => {
  const all = {
    ...said(undefined, []),
    broker: {
      url: 'https://b',
      pair: ['rome', 'milan'] as const,
      failure: 'tenant default is suspended: x',
      conditions: [],
    },
  };
  expect(decide(all)).toMatchObject([{ code: 'broker_refuses' }]);
});

describe('where a cluster answered, what the broker says', () => {
  const answered = {
    cluster: 'rome',
    server: 's',
    kubectl: 'kubectl',
    installed: true,
    unread: [],
    facts: {} as ClusterFacts,
  };

  test('is a warning, and a peering that it does not know is none', () => {
    const waits = said('Ready', [condition('Authenticated', 'both', 'False')]);
    expect(asked({ ...waits, clusters: [answered] })).toMatchObject([{ code: 'other_warning' }]);
    expect(asked({ ...said(undefined, []), clusters: [answered] })).toEqual([]);
  });
});
