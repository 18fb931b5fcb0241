import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Node } from '#shared/domain/kube-object.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { bootsOf, createNeighbourKeeper, rebooted } from './neighbours.ts';

const node = (name: string, address: string, bootID?: string, labels: Record<string, string> = {}): Node =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels },
    status: {
      addresses: [
        { type: 'InternalIP', address },
        { type: 'InternalIP', address: 'fd00::1' },
        { type: 'Hostname', address: name },
      ],
      ...(bootID === undefined ? {} : { nodeInfo: { bootID } }),
    },
  }) as unknown as Node;

test('counted are other machines that say which boot they are in: not this node, no virtual one, none that is silent', () => {
  const boots = bootsOf(
    [
      node('self', '10.0.0.1', 'a'),
      node('other', '10.0.0.2', 'b'),
      node('silent', '10.0.0.3'),
      node('empty', '10.0.0.4', ''),
      node('milan', '10.0.0.5', 'c', { 'liqo.io/type': 'virtual-node' }),
    ],
    'self',
  );
  expect([...boots]).toEqual([['10.0.0.2', 'b']]);
});

test('dropped are exactly the addresses whose boot is another one or was not known, for any order of nodes', () => {
  const boots = fc.dictionary(fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3'), fc.constantFrom('a', 'b'));
  fc.assert(
    fc.property(boots, boots, (before, now) => {
      const [known, current] = [new Map(Object.entries(before)), new Map(Object.entries(now))];
      const dropped = rebooted(known, current);
      const backwards = rebooted(known, new Map(Object.entries(now).reverse()));
      expect(dropped).toEqual(backwards);
      for (const address of current.keys())
        expect(dropped.includes(address)).toBe(known.get(address) !== current.get(address));
      expect(dropped.every((address) => current.has(address))).toBe(true);
    }),
  );
});

/** `fails`: so many attempts do. */
function start(fails = 0) {
  const clock = new ManualClock();
  const stop = new AbortController();
  const written: string[] = [];
  let nodes: Node[] = [];
  let left = fails;
  const keeper = createNeighbourKeeper(
    {
      clock,
      log: silentLog,
      commands: {
        file: async (_, text) => text,
        run: async (program, args) => {
          written.push([program, ...args.slice(0, -1), args.at(-1)?.trim()].join(' '));
          left -= 1;
          return left >= 0 ? { code: 1, stdout: '', stderr: 'no' } : { code: 0, stdout: '', stderr: '' };
        },
      },
    },
    'self',
    () => ({ nodes }),
    stop.signal,
  );
  const see = async (...now: Node[]): Promise<void> => {
    nodes = now;
    keeper.look();
    await keeper.ended();
  };
  return { keeper, clock, stop, written, see };
}

test('a heartbeat costs nothing; a new boot, also under another name, costs one command', async () => {
  const { see, written, stop } = start();
  await see(node('one', '10.0.0.1', 'a'), node('two', '10.0.0.2', 'b'));
  await see(node('one', '10.0.0.1', 'a'), node('two', '10.0.0.2', 'b'));
  expect(written.splice(0)).toEqual(['ip -4 -force -batch neigh flush to 10.0.0.1\nneigh flush to 10.0.0.2']);
  await see(node('one', '10.0.0.1', 'a'), node('three', '10.0.0.2', 'c'));
  expect(written.splice(0)).toEqual(['ip -4 -force -batch neigh flush to 10.0.0.2']);
  stop.abort();
});

test('what fails is tried again a second later, and after that no more', async () => {
  const { keeper, see, clock, written, stop } = start(1);
  await see(node('one', '10.0.0.1', 'a'));
  expect(written).toHaveLength(1);
  clock.advance(1_000);
  await new Promise((resolve) => setImmediate(resolve));
  await keeper.ended();
  expect(written).toHaveLength(2);
  await see(node('one', '10.0.0.1', 'a'));
  expect(written).toHaveLength(2);
  stop.abort();
});
