/** Tables that only make packets faster, against a real kernel. */
import { afterAll, expect, test } from 'vitest';
import { nodeModel } from '#agent/testing/network-models.ts';
import { NetnsFixture } from '#test/harness/netns.ts';
import { planNode } from '../plan/node-plan.ts';
import { commandsIn } from './commands.ts';
import { openNamespace } from './namespace.ts';
import { NftTables } from './nft-tables.ts';

const world = new NetnsFixture();
afterAll(() => world.close());

test('what the kernel cannot make faster works all the same, is told, and is faster as soon as it can be', async () => {
  const netns = await world.add('node');
  const host = openNamespace({ pid: netns.pid });
  const model = { ...nodeModel, shortCuts: [{ to: '10.200.1.101', bridge: 'cni0', port: 'veth1' }] };
  const has = async (): Promise<boolean> => (await netns.exec('nft', 'list', 'tables')).includes('netdev isthmus');

  const early = await host.apply(planNode(model));
  expect(early.without.join()).toContain('table netdev isthmus: nft -f');
  expect(await netns.exec('nft', 'list', 'tables')).toContain('table ip isthmus');
  expect(await has()).toBe(false);

  await netns.ip(['link add name cni0 type bridge', 'link add name veth1 type veth peer name eth1']);
  const [later, again] = [await host.apply(planNode(model)), await host.apply(planNode(model))];
  expect([later.without, later.wrote]).toEqual([[], ['nft replace netdev isthmus']]);
  expect([again.without, again.wrote]).toEqual([[], []]);
  expect(await netns.exec('nft', 'list', 'table', 'netdev', 'isthmus')).toContain(
    'ip daddr 10.200.1.101 udp dport 6091 fwd to "veth1"',
  );

  // a rule that leads nowhere would swallow packets: better none
  await netns.ip(['link del dev veth1']);
  expect((await host.apply(planNode(model))).without).toHaveLength(1);
  expect(await has()).toBe(false);

  await netns.ip(['link add name veth1 type veth peer name eth1']);
  await host.apply(planNode(model));
  expect((await host.apply(planNode(nodeModel))).wrote).toEqual([
    'nft add table netdev isthmus\ndelete table netdev isthmus',
  ]);
  await host.apply(planNode(model));
  expect(await host.sweep()).toContain('table netdev isthmus');
  expect(await has()).toBe(false);
  await host.close();
});

test('short cuts of an earlier life stay while it is not known where gateways are plugged in, and go once none is wanted', async () => {
  const netns = await world.add('restarted');
  await netns.ip(['link add name cni0 type bridge', 'link add name veth1 type veth peer name eth1']);
  const model = { ...nodeModel, shortCuts: [{ to: '10.200.1.101', bridge: 'cni0', port: 'veth1' }] };
  const tables = () => netns.exec('nft', '-s', 'list', 'ruleset');
  const earlier = openNamespace({ pid: netns.pid });
  await earlier.apply(planNode(model));
  const before = await tables();
  await earlier.close();

  const host = openNamespace({ pid: netns.pid });
  await host.apply(planNode({ ...model, shortCuts: undefined }));
  expect(await tables()).toContain('udp dport 6091 fwd to "veth1"');
  await host.apply(planNode(model));
  expect(await tables()).toBe(before);
  await host.close();

  const last = openNamespace({ pid: netns.pid });
  await last.apply(planNode({ ...model, shortCuts: undefined }));
  await last.apply(planNode({ ...model, shortCuts: [] }));
  expect(await tables()).not.toContain('table netdev isthmus');
  await last.close();
});

test('a table that is not wanted is looked for at first and beside a change, not in every pass', async () => {
  const netns = await world.add('quiet');
  const commands = commandsIn(`/proc/${netns.pid}/ns/net`);
  let looks = 0;
  const tables = new NftTables({
    ...commands,
    run: (program, args) => {
      if (args.includes('netdev')) looks += 1;
      return commands.run(program, args);
    },
  });
  await netns.exec('nft', 'add', 'table', 'netdev', 'isthmus');
  const written = await tables.applyOwn(planNode(nodeModel));
  expect(written.join()).toContain('nft replace');
  expect(await netns.exec('nft', 'list', 'tables')).not.toContain('netdev isthmus');
  expect(looks).toBe(1);
  tables.lookAgain();
  expect(await tables.applyOwn(planNode(nodeModel))).toEqual([]);
  expect(looks).toBe(1);
  await netns.exec('nft', 'flush', 'table', 'ip', 'isthmus');
  tables.lookAgain();
  await tables.applyOwn(planNode(nodeModel));
  expect(looks).toBe(2);
  commands.close();
});

test('where no other program has tables one process reads all of them, once until something is written or may have been', async () => {
  const netns = await world.add('alone');
  const commands = commandsIn(`/proc/${netns.pid}/ns/net`);
  let processes = 0;
  const counting = {
    ...commands,
    run: (program: string, args: readonly string[]) => {
      processes += 1;
      return commands.run(program, args);
    },
    must: (program: string, args: readonly string[]) => {
      processes += 1;
      return commands.must(program, args);
    },
  };
  const tables = new NftTables(counting, { alone: true });
  expect((await tables.applyOwn(planNode(nodeModel))).join()).toContain('nft replace ip isthmus, ip6 isthmus');
  const listed = await tables.listings();
  expect(listed).toHaveLength(2);

  tables.lookAgain();
  processes = 0;
  expect(await tables.applyOwn(planNode(nodeModel))).toEqual([]);
  expect(await tables.listings()).toEqual(listed);
  expect(processes).toBe(1);

  await netns.exec('nft', 'add', 'rule', 'ip6', 'isthmus', 'input', 'accept');
  expect(await tables.listings()).toEqual(listed);
  tables.lookAgain();
  expect(await tables.listings()).not.toEqual(listed);
  expect((await tables.applyOwn(planNode(nodeModel))).join()).toContain('nft replace ip isthmus, ip6 isthmus');
  expect(await netns.exec('nft', 'list', 'table', 'ip6', 'isthmus')).not.toContain('accept\n\t}');
  commands.close();
});
