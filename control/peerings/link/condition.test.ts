/** What a peering says of its link: the condition NetworkReady, and the phase that comes of it. */
import { describe, expect, test } from 'vitest';
import type { ObservedObject } from '#shared/schema/protocol/agent-protocol.ts';
import type { PeeringState } from '../../model/peering-records.ts';
import {
  client,
  configuration,
  connection,
  here,
  now,
  report,
  run,
  server,
  there,
  working,
} from './testing/link-reports.ts';

const unmet = ({ conditions }: PeeringState) => {
  const found = conditions.find(({ type }) => type === 'NetworkReady');
  return found?.status === 'True' ? 'Linked' : `${found?.reason}/${found?.side}`;
};

describe('a peering with a network', () => {
  const up = (peer: string) => connection(peer, 'Connected', { latency: '1ms' });

  test('is Ready when both ends say Connected, measured or not, and tells what it could not read', () => {
    const odd = connection('milan', 'Connected', { latency: 'N/A', packetLoss: 300 });
    const { state } = run([...working, ...here, odd], [...there, connection('rome', 'Connected', { latency: 'N/A' })]);
    expect(state.phase).toBe('Ready');
    expect(state.link?.consumer.connection).toMatchObject({ value: 'Connected' });
    expect(state.link?.consumer.connection).not.toHaveProperty('latency');
    expect(state.warnings).toEqual([
      { side: 'consumer', message: expect.stringContaining('Connection gw-milan: packetLoss is 300') },
    ]);
    const mended = run([...working, ...here, up('milan')], [...there, up('rome')], { state });
    expect(mended.state).not.toHaveProperty('warnings');
  });

  test.each<{ when: string; consumer: ObservedObject[]; provider: ObservedObject[]; is: string; says: RegExp }>([
    {
      when: 'nothing is granted',
      consumer: [],
      provider: [],
      is: 'WaitingForConfiguration/provider',
      says: /milan has no ranges for rome yet$/,
    },
    {
      when: 'a range is not granted',
      consumer: [configuration('milan', 'False', 'pool exhausted')],
      provider: [configuration('rome')],
      is: 'WaitingForConfiguration/consumer',
      says: /rome has no ranges for milan yet: pool exhausted/,
    },
    {
      when: 'the gateway has no endpoint',
      consumer: [configuration('milan')],
      provider: [configuration('rome'), server()],
      is: 'WaitingForEndpoint/provider',
      says: /the gateway of milan cannot be reached from outside yet: no node has an address/,
    },
    {
      when: 'the client has no key',
      consumer: [configuration('milan'), client],
      provider: there,
      is: 'WaitingForKey/consumer',
      says: /the gateway of rome has no key yet/,
    },
    {
      when: 'neither end has heard the other',
      consumer: here,
      provider: there,
      is: 'Connecting/provider',
      says: /milan has not reached rome yet/,
    },
    {
      when: 'one end hears nothing',
      consumer: [...here, connection('milan', 'Error')],
      provider: [...there, up('rome')],
      is: 'LinkDown/consumer',
      says: /rome hears nothing from milan at 192.0.2.1:30000/,
    },
    {
      when: 'both ends are connected',
      consumer: [...here, up('milan')],
      provider: [...there, up('rome')],
      is: 'Linked',
      says: /are linked/,
    },
  ])('says $is when $when', ({ consumer, provider, is, says }) => {
    const { state } = run([...working, ...consumer], provider);
    expect([unmet(state), state.phase]).toEqual([is, is === 'Linked' ? 'Ready' : 'Negotiating']);
    const found = state.conditions.find(({ type }) => type === 'NetworkReady');
    expect(found?.message).toMatch(says);
    if (is !== 'Linked') expect(found?.action).not.toBe('');
  });

  test('is Ready only when the node is, too', () => {
    const { state } = run([...here, up('milan')], [...there, up('rome')]);
    expect(unmet(state)).toBe('Linked');
    expect(state.phase).not.toBe('Ready');
  });

  test('is Degraded when the link goes down, and says on which side and where', () => {
    const ready = run([...working, ...here, up('milan')], [...there, up('rome')]).state;
    const down = run([...working, ...here, up('milan')], [...there, connection('rome', 'Connecting')], {
      state: ready,
    });
    expect([down.state.phase, unmet(down.state)]).toEqual(['Degraded', 'LinkDown/provider']);
    const gone = run([...working, configuration('milan')], there, { state: ready });
    expect([gone.state.phase, unmet(gone.state)]).toEqual(['Degraded', 'LinkDown/provider']);
  });

  test('fails when a cluster refuses its part of the link, in the words of that cluster', () => {
    const refusals = [
      { object: 'Configuration/liqo-tenant-rome/rome', code: 'policy_refused', message: 'not that range' },
    ];
    const { state } = run(here, [], { provider: report('provider', [], { refusals }) });
    expect([state.phase, unmet(state)]).toEqual(['Failed', 'Refused/provider']);
    expect(state.conditions.find(({ type }) => type === 'NetworkReady')?.message).toContain('not that range');
  });

  test('keeps the time of a report while nothing in it changes', () => {
    const first = run([...here, up('milan')], [...there, up('rome')]).state;
    const later = run([...here, up('milan')], [...there, connection('rome', 'Connected', { latency: '2ms' })], {
      state: first,
      now: now + 5_000,
    }).state;
    expect(later.link?.consumer.connection?.reportedAt).toBe(now);
    expect(later.link?.provider.connection).toMatchObject({ latency: '2ms', reportedAt: now + 5_000 });
  });
});
