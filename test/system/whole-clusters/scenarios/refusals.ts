/** What is refused on the way in, at the broker: with a message that says what to do, and without any change. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type Answer, ScriptedAgent, send } from '#functions/local/scripted-agent.ts';
import type { Peering } from '#shared/schema/api/resources.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { eventually } from '#test/harness/eventually.ts';
import { consumer, patience, provider, reported, type Stage } from '../stage.ts';

/** A cluster that exists only as its papers. */
const foreignOwner = 'naples';

interface Login {
  readonly url: string;
  readonly key: string;
  readonly caPem: string;
}

const loginOf = (on: Stage): Login =>
  JSON.parse(readFileSync(path.join(on.world.bed.dir, 'world', 'config.json'), 'utf8')) as Login;

async function rest(on: Stage, method: 'GET' | 'POST', at: string, body?: unknown): Promise<Answer> {
  const { url, key, caPem } = loginOf(on);
  return await send({
    method,
    url: `${url}${at}`,
    ca: caPem,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** Of a peering, what a request changes: its conditions go on telling of what happens elsewhere. */
const requested = ({ id, resources, class: of, labels, owner, createdAt, unpeerRequestedAt }: Peering) => ({
  ...{ id, resources, class: of, labels, owner, createdAt, unpeerRequestedAt },
});

/** Everything that a refused request could have changed. */
async function standing(on: Stage): Promise<unknown> {
  const [peerings, slices] = await Promise.all([
    rest(on, 'GET', '/v1/peerings'),
    on.api(consumer).list(resourceSlices),
  ]);
  expect(peerings.status).toBe(200);
  return {
    peerings: (peerings.body.items as Peering[]).map(requested),
    slices: slices.map(({ metadata, spec }) => ({ name: metadata.name, generation: metadata.generation, spec })),
  };
}

export function refusals(on: () => Stage): void {
  describe('a join token', () => {
    const login = (): Login => loginOf(on());
    const newToken = async (more: { readonly replaceKey?: true } = {}): Promise<string> => {
      const answer = await rest(on(), 'POST', '/v1/join-tokens', { cluster: foreignOwner, ...more });
      expect(answer.status, JSON.stringify(answer.body)).toBe(201);
      return answer.body.token as string;
    };
    const known = async (): Promise<string> => {
      const answer = await rest(on(), 'GET', '/v1/clusters');
      expect(answer.status, JSON.stringify(answer.body)).toBe(200);
      return JSON.stringify(answer.body);
    };
    afterAll(async () => void (await on().world.isthmus('leave', foreignOwner, '--force')));

    test('that this broker never made is refused', async () => {
      const agent = new ScriptedAgent(await newToken(), login().caPem);
      const answer = await agent.enroll({ token: 'a-secret-that-was-never-issued-0123456789a' });
      expect([answer.status, answer.body.code]).toEqual([401, 'join_token_unknown']);
      expect(await known()).not.toContain(foreignOwner);
    });

    test('for another cluster is refused', async () => {
      const agent = new ScriptedAgent(await newToken(), login().caPem);
      const answer = await agent.enroll({ clusterId: 'turin' });
      expect(answer.status).toBe(401);
      expect(await known()).not.toMatch(/naples|turin/);
    });

    test('works once: a second enrolment with another key is refused', async () => {
      const token = await newToken();
      const first = new ScriptedAgent(token, login().caPem);
      expect((await first.enroll()).status).toBeLessThan(300);
      const second = await new ScriptedAgent(token, login().caPem).enroll();
      expect([second.status, second.body.code]).toEqual([401, 'join_token_used']);
      expect(second.body.detail).toMatch(/was used at/);
      expect((await first.call('GET', '/v1/agent/desired?after=0')).status).toBe(200);
    });

    test('gives no way around the signature: a replayed and a mis-signed request are refused', async () => {
      // The cluster has joined with the key of the test before.
      const agent = new ScriptedAgent(await newToken({ replaceKey: true }), login().caPem);
      const enrolled = await agent.enroll();
      expect(enrolled.status, JSON.stringify(enrolled.body)).toBeLessThan(300);
      expect((await agent.call('GET', '/v1/agent/desired?after=0')).status).toBe(200);
      const replayed = await agent.call('GET', '/v1/agent/desired?after=0', undefined, {
        authorization: agent.lastAuthorization,
      });
      const missigned = await agent.call(
        'POST',
        '/v1/agent/observed',
        { sets: [] },
        { sentBody: { sets: [], asks: [] } },
      );
      expect([replayed.status, missigned.status]).toEqual([401, 401]);
    });
  });

  describe('asking for a peering', () => {
    test.each([
      { what: 'with itself', args: ['rome', 'rome'], says: /a cluster cannot peer with itself/, code: 2 },
      { what: 'with an unknown provider', args: ['rome', 'atlantis'], says: /no cluster atlantis has joined/, code: 4 },
      { what: 'for an unknown consumer', args: ['atlantis', 'milan'], says: /no cluster atlantis has joined/, code: 4 },
      {
        what: 'with a CPU that is no quantity',
        args: ['rome', 'milan', '--cpu', 'lots'],
        says: /--cpu.*lots.*4Gi/s,
        code: 2,
      },
      {
        what: 'with a resource that is no quantity',
        args: ['rome', 'milan', '--resource', 'nvidia.com/gpu=one'],
        says: /nvidia\.com\/gpu=one/,
        code: 2,
      },
      { what: 'with less than nothing', args: ['rome', 'milan', '--memory', '-1Gi'], says: /-1Gi/, code: 2 },
      {
        what: 'with a class that no provider offers',
        args: ['rome', 'milan', '--class', 'gold'],
        says: /class/,
        code: 6,
      },
    ])('$what is refused, and nothing changes', async ({ args, says, code }) => {
      const before = await standing(on());
      const ended = await on().world.isthmus('peer', ...args);
      expect(ended.stderr).toMatch(says);
      expect(ended.code, reported(ended)).toBe(code);
      expect(await standing(on())).toEqual(before);
    });

    test('for more than the provider’s policy allows is refused by naming resource and limit, and nothing changes', async () => {
      const limit = (cpu: string | null) =>
        on().kubectl(provider, [
          ...['patch', 'peeringpolicy', 'default', '--type=merge', '-p'],
          JSON.stringify({ spec: { asProvider: { maxResourcesPerPeer: { cpu } } } }),
        ]);
      const atBroker = async (): Promise<string> => {
        const { items } = (await rest(on(), 'GET', '/v1/clusters')).body;
        return JSON.stringify(items.find((one: { name: string }) => one.name === provider)?.policies);
      };
      const patched = await limit('4');
      expect(patched.code, reported(patched)).toBe(0);
      try {
        await eventually('the broker knows the limit', async () => (await atBroker()).includes('"cpu":"4"'), patience);
        const before = await standing(on());
        const ended = await on().world.isthmus('peer', consumer, provider, '--cpu', '5');
        expect(ended.stderr).toMatch(/cpu is 5.*PeeringPolicy default of milan.*at most 4/);
        expect(ended.code, reported(ended)).toBe(6);
        expect(await standing(on())).toEqual(before);
      } finally {
        await limit(null);
      }
      await eventually(
        'the broker knows that the limit is gone',
        async () => !(await atBroker()).includes('"cpu":"4"'),
        patience,
      );
      expect(await on().api(provider).get(peeringPolicies, { name: 'default' })).toMatchObject({
        spec: { asProvider: { maxResourcesPerPeer: {} } },
      });
    });
  });
}
