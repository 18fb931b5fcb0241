import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CidrRange, formatCidr, overlap, parseCidr, sizeOf } from '#shared/domain/cidr.ts';
import { type Grant, Ipam, type PrefixRequest } from './ipam.ts';

const range = (text: string): CidrRange => parseCidr(text) as CidrRange;
const granted = (grant: Grant): string => {
  if ('refused' in grant) throw new Error(grant.refused.message);
  return grant.granted;
};
const pools = ['10.0.0.0/27', '192.168.0.0/28'];

/** Brute force: every holder in a list, every aligned block tried. */
class Oracle {
  readonly held = new Map<string, { readonly range: CidrRange; readonly shared: boolean }>();
  fits(wanted: CidrRange, shared: boolean): boolean {
    return [...this.held.values()].every((one) => !overlap(one.range, wanted) || (shared && one.shared));
  }
  anyFree(length: number): boolean {
    return pools.map(range).some((pool) => {
      for (let base = pool.base; base < pool.base + sizeOf(pool.length); base += sizeOf(length))
        if (length >= pool.length && this.fits({ base, length }, false)) return true;
      return false;
    });
  }
  inPools(wanted: CidrRange): boolean {
    return pools.map(range).some((pool) => pool.length <= wanted.length && overlap(pool, wanted));
  }
}

const request = fc.record({
  owner: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'),
  base: fc.constantFrom('10.0.0.', '192.168.0.', '203.0.113.'),
  host: fc.nat(31),
  length: fc.integer({ min: 27, max: 32 }),
  immutable: fc.boolean(),
  shared: fc.boolean(),
  release: fc.boolean(),
});
type Step = typeof request extends fc.Arbitrary<infer U> ? U : never;
const toRequest = ({ owner, base, host, length, immutable, shared }: Step): PrefixRequest => ({
  owner,
  wanted: formatCidr(range(`${base}${host}/${length}`)),
  immutable,
  // Only what stays where it is can be shared.
  shared: shared && immutable,
});

describe('ranges', () => {
  test('are granted exactly when brute force over small pools finds room, never overlap unless shared, and come back when released', () => {
    fc.assert(
      fc.property(fc.array(request, { maxLength: 40 }), (steps) => {
        const ipam = new Ipam(pools);
        const oracle = new Oracle();
        for (const step of steps) {
          if (step.release) {
            ipam.releasePrefix(step.owner);
            oracle.held.delete(step.owner);
            continue;
          }
          const asked = toRequest(step);
          const { shared = false, immutable = false } = asked;
          const known = oracle.held.get(step.owner);
          const answer = ipam.grantPrefix(asked);
          if (known) {
            expect(answer).toEqual({ granted: formatCidr(known.range) });
            continue;
          }
          const wanted = range(asked.wanted);
          const exact = oracle.fits(wanted, shared) && (oracle.inPools(wanted) || shared);
          const possible = exact || (!immutable && oracle.anyFree(wanted.length));
          expect('granted' in answer).toBe(possible);
          if ('refused' in answer) {
            expect(answer.refused.message).toContain(asked.wanted);
            continue;
          }
          const got = range(answer.granted);
          expect(got.length).toBe(wanted.length);
          if (exact) expect(answer.granted).toBe(asked.wanted);
          expect(oracle.fits(got, shared)).toBe(true);
          oracle.held.set(step.owner, { range: got, shared });
        }
      }),
      { numRuns: 500 },
    );
  });

  test('rebuilt in any order from the written grants are the same, also after crashes before a grant was written', () => {
    fc.assert(
      fc.property(
        fc.array(request, { maxLength: 20 }),
        fc.func(fc.boolean()),
        fc.func(fc.nat()),
        (steps, isWritten, order) => {
          const live = new Ipam(pools);
          const objects = new Map<string, { request: PrefixRequest; status: string }>();
          for (const step of steps) {
            const asked = toRequest(step);
            const answer = live.grantPrefix(asked);
            if ('granted' in answer && !objects.has(asked.owner))
              objects.set(asked.owner, { request: asked, status: answer.granted });
          }
          const written = [...objects.values()].filter(({ request: { owner } }) => isWritten(owner));
          const again = new Ipam(pools);
          for (const { request: asked, status } of written.toSorted(
            (a, b) => order(a.request.owner) - order(b.request.owner),
          ))
            expect(granted(again.grantPrefix({ ...asked, current: status }))).toBe(status);
          // Nothing is left of the others: all that was written once released, the pools are whole.
          for (const { request: asked } of written) again.releasePrefix(asked.owner);
          for (const wanted of pools) expect(granted(again.grantPrefix({ owner: wanted, wanted }))).toBe(wanted);
        },
      ),
      { numRuns: 200 },
    );
  });

  test.each([
    ['of one address is moved to where no host is', '10.0.0.2/32', 'announced', '198.18.0.0/32'],
    ['of a few addresses, too', '192.168.7.0/29', 'announced', '198.18.0.0/29'],
    ['large enough stays as it is', '10.50.0.0/24', 'announced', '10.50.0.0/24'],
    ['that this cluster names stays, however small', '10.0.0.2/32', 'named', '10.0.0.2/32'],
    ['that this cluster names stays, even a public one', '203.0.113.0/24', 'named', '203.0.113.0/24'],
    ['public without a name is moved', '203.0.113.0/24', 'announced', '10.9.1.0/24'],
    ['that a node is connected to is moved, also when a policy names it', '10.9.0.0/24', 'named', '10.9.1.0/24'],
  ] as const)('a range of a peer %s', (_what, wanted, origin, expected) => {
    const ipam = new Ipam();
    ipam.occupy('what Node n1 is connected to', ['10.9.0.0/24', '10.9.0.1/32']);
    expect(granted(ipam.grantPrefix({ owner: 'peer', wanted, origin }))).toBe(expected);
  });

  test('ranges of peers never hold what a node is connected to, for any announcement', () => {
    const address = fc
      .tuple(fc.constantFrom('10.0.0', '10.0.1', '192.168.7'), fc.nat(255))
      .map(([a, b]) => `${a}.${b}`);
    const announced = fc.tuple(address, fc.integer({ min: 8, max: 32 }));
    fc.assert(
      fc.property(fc.array(address, { maxLength: 4 }), fc.array(announced, { maxLength: 12 }), (hosts, wishes) => {
        const ipam = new Ipam();
        const ours = [...hosts.map((one) => `${one}/32`), '192.168.7.0/24'];
        ipam.occupy('node', ours);
        for (const [i, [base, length]] of wishes.entries()) {
          const wanted = formatCidr(range(`${base}/${length}`));
          const answer = ipam.grantPrefix({ owner: `peer ${i}`, wanted, origin: 'announced' });
          if ('granted' in answer)
            for (const one of ours) expect(overlap(range(answer.granted), range(one)), answer.granted).toBe(false);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('fill parts that are already split before a whole one is broken', () => {
    const ipam = new Ipam(['10.0.0.0/8']);
    ipam.grantPrefix({ owner: 'x', wanted: '10.128.0.0/16' });
    ipam.grantPrefix({ owner: 'y', wanted: '10.128.0.0/16' });
    expect(granted(ipam.grantPrefix({ owner: 'z', wanted: '10.0.0.0/9' }))).toBe('10.0.0.0/9');
    expect(ipam.prefixOf('y')).toBe('10.129.0.0/16');
  });

  test('that a node uses are avoided, and free again when the node is gone', () => {
    const ipam = new Ipam();
    ipam.occupy('node n1', ['10.1.2.3/32', '10.200.1.0/24']);
    expect(granted(ipam.grantPrefix({ owner: 'a', wanted: '10.1.0.0/16' }))).not.toBe('10.1.0.0/16');
    expect(ipam.grantPrefix({ owner: 'b', wanted: '10.200.0.0/16', immutable: true })).toMatchObject({
      refused: { reason: 'RangeTaken', message: '10.200.0.0/16 overlaps node n1' },
    });
    expect(granted(ipam.grantPrefix({ owner: 'pods', wanted: '10.200.0.0/16', immutable: true, shared: true }))).toBe(
      '10.200.0.0/16',
    );
    ipam.occupy('node n1', []);
    expect(granted(ipam.grantPrefix({ owner: 'c', wanted: '10.1.0.0/16' }))).toBe('10.1.0.0/16');
  });

  test.each([
    ['malformed', { wanted: '10.0.0/16' }, 'RangeRefused', 'IPv4 range'],
    ['with host bits', { wanted: '10.0.0.1/16' }, 'RangeRefused', '10.0.0.0/16'],
    ['too large', { wanted: '8.0.0.0/7' }, 'RangeRefused', '8 to 32'],
    [
      'outside the pools and immovable',
      { wanted: '203.0.113.0/24', immutable: true },
      'OutsidePools',
      '10.0.0.0/27, 192.168.0.0/28',
    ],
    ['for which no pool has room', { wanted: '10.0.0.0/24' }, 'PoolExhausted', '10.0.0.0/27, 192.168.0.0/28'],
    ['with more reserved than it has', { wanted: '10.0.0.0/30', preAllocated: 5 }, 'RangeRefused', '4 addresses'],
  ])('%s are refused by name', (_what, asked, reason, says) => {
    const answer = new Ipam(pools).grantPrefix({ owner: 'a', ...asked });
    expect(answer).toMatchObject({ refused: { reason } });
    expect('refused' in answer && answer.refused.message).toContain(says);
  });
});

describe('addresses', () => {
  const step = fc.record({
    owner: fc.nat(12).map(String),
    release: fc.boolean(),
    preferred: fc.option(fc.nat(9), { nil: undefined }),
  });
  test('have one owner each, every owner one, until none is left; the reserved ones have none', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const ipam = new Ipam();
        ipam.grantPrefix({ owner: 'net', wanted: '10.0.0.0/29', preAllocated: 1 });
        const held = new Map<string, string>();
        for (const { owner, release, preferred } of steps) {
          if (release) {
            ipam.releaseAddress(owner);
            held.delete(owner);
            continue;
          }
          const answer = ipam.grantAddress(owner, 'net', preferred === undefined ? undefined : `10.0.0.${preferred}`);
          expect('granted' in answer).toBe(held.has(owner) || held.size < 7);
          if ('refused' in answer) {
            expect(answer.refused).toMatchObject({ reason: 'AddressesExhausted' });
            expect(answer.refused.message).toContain('10.0.0.0/29');
            continue;
          }
          if (held.has(owner)) expect(answer.granted).toBe(held.get(owner));
          held.set(owner, answer.granted);
          expect(new Set(held.values()).size).toBe(held.size);
          expect([1, 2, 3, 4, 5, 6, 7].map((i) => `10.0.0.${i}`)).toContain(answer.granted);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('rebuilt from status in any order are the same', () => {
    const [live, again] = [new Ipam(), new Ipam()];
    for (const ipam of [live, again]) ipam.grantPrefix({ owner: 'net', wanted: '10.0.0.0/24', preAllocated: 1 });
    const status = Array.from(
      { length: 200 },
      (_, i) => [`o${i}`, granted(live.grantAddress(`o${i}`, 'net'))] as const,
    );
    for (const [owner, address] of status.toReversed())
      expect(granted(again.grantAddress(owner, 'net', address))).toBe(address);
    expect(granted(again.grantAddress('new', 'net'))).toBe(granted(live.grantAddress('new', 'net')));
  });
});

test('a hundred peers and ten thousand addresses cost milliseconds', () => {
  const ipam = new Ipam();
  const before = process.cpuUsage();
  for (let peer = 0; peer < 100; peer++)
    for (const wanted of ['10.200.0.0/16', '10.70.0.0/16'])
      granted(ipam.grantPrefix({ owner: `${peer} ${wanted}`, wanted }));
  const addresses = new Set<string>();
  for (let i = 0; i < 10_000; i++) addresses.add(granted(ipam.grantAddress(`ip ${i}`, '0 10.70.0.0/16')));
  for (let i = 0; i < 10_000; i += 2) ipam.releaseAddress(`ip ${i}`);
  for (let i = 0; i < 10_000; i += 2) granted(ipam.grantAddress(`ip ${i}`, '0 10.70.0.0/16'));
  expect(addresses.size).toBe(10_000);
  // Of the processor, so that it does not count how busy the machine is: quadratic behaviour takes seconds.
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
});
