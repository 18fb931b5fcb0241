import { expect, test } from 'vitest';
import { adminOf, createBrokerClusters } from '#control/testing/broker-clusters.ts';
import { silentLog } from '#shared/ports/log.ts';
import { peeringResource } from './present.ts';
import { whenSettled } from './wait-condition.ts';

const signal = new AbortController().signal;

/** The answer to a caller that waits for a peering, once it has come so far. */
async function told(phase: 'Proposed' | 'Ready', asked: { readonly wait?: number; readonly status: number }) {
  const clusters = createBrokerClusters();
  await clusters.join('rome');
  await clusters.join('milan');
  const caller = adminOf('default');
  const pair = { consumer: 'rome', provider: 'milan', resources: {} };
  const { peering } = await clusters.control.peerings.request(caller, pair);
  if (phase === 'Ready') {
    await clusters.until(async () => (await clusters.control.peerings.get(caller, peering.id)).phase === 'Ready');
  }
  const reply = { status: asked.status, body: peeringResource(peering) };
  const { status, headers } = await whenSettled(reply, {
    control: clusters.control,
    caller,
    clock: clusters.clock,
    log: silentLog,
    signal,
    query: { wait: asked.wait },
    listen: () => ({
      changed: async (ms: number) => {
        clusters.clock.advance(ms);
        return true;
      },
      end: () => undefined,
    }),
  } as Parameters<typeof whenSettled>[1]);
  return { status, headers, id: peering.id };
}

test.each([
  { phase: 'Proposed', status: 202, answers: 202 },
  { phase: 'Proposed', wait: 2, status: 202, answers: 202 },
  { phase: 'Ready', wait: 2, status: 202, answers: 201 },
  { phase: 'Ready', status: 202, answers: 202 },
  { phase: 'Ready', wait: 2, status: 200, answers: 200 },
] as const)(
  'a request for a peering that is $phase, waited for $wait s, answers $answers with its Location',
  async ({ phase, answers, ...asked }) => {
    const { status, headers, id } = await told(phase, asked);
    expect([status, headers]).toEqual([answers, { location: `/v1/peerings/${id}` }]);
  },
);
