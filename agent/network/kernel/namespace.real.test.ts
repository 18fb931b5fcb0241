/** The applier against a real kernel, each test in a namespace of its own. */
import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gatewayModel, nodeModel } from '#agent/testing/network-models.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type Netns, NetnsFixture } from '#test/harness/netns.ts';
import { startWireGuard, wireGuardKeys } from '#test/harness/netns-cluster.ts';
import { planGateway } from '../plan/gateway-plan.ts';
import type { NodeModel } from '../plan/node-model.ts';
import { planNode } from '../plan/node-plan.ts';
import { commandsIn } from './commands.ts';
import { type Namespace, openNamespace } from './namespace.ts';
import type { UserFirewall, UserRoutes } from './user-configurations.ts';
import { kernelTunnel } from './wireguard.ts';

const world = new NetnsFixture();
let netns: Netns;
let host: Namespace;
let number = 0;
beforeEach(async () => {
  number += 1;
  netns = await world.add(`host${number}`);
  host = openNamespace({ pid: netns.pid });
});
afterEach(() => host.close());
afterAll(() => world.close());

/** A device's own IPv6 link-local address appears one second after the device, once duplicate address detection has ended. */
const ofTheKernelItself = ({ dst = '' }: { readonly dst?: string }): boolean => /^fe80:/.test(dst);

/** Everything that a reboot must bring back, as the tools print it. */
async function kernelState(space: Netns): Promise<string> {
  const routesThere: { readonly dst?: string }[] = JSON.parse(
    await space.exec('ip', '-j', '-d', 'route', 'show', 'table', 'all'),
  );
  const parts = [
    await space.exec('nft', '-j', '-s', 'list', 'ruleset'),
    await space.exec('ip', '-j', 'rule'),
    JSON.stringify(routesThere.filter((route) => !ofTheKernelItself(route))),
    await space.exec('ip', '-j', '-d', 'neigh'),
    await space.exec('ip', '-j', '-4', 'address'),
  ];
  return parts.join('\n').replaceAll(/"(handle|ifindex|link_index)":\s*\d+/g, '""');
}

const firewall = (name: string, extra: Partial<UserFirewall['table']> = {}): UserFirewall => ({
  name: `ns/${name}`,
  table: {
    name,
    family: 'IPV4',
    chains: [
      {
        name: 'mine',
        type: 'filter',
        policy: 'accept',
        hook: 'forward',
        priority: 0,
        rules: { filterRules: [{ name: 'r', match: [], action: 'accept', counter: true }] },
      },
    ],
    ...extra,
  },
});

const routes = (name: string, destination: string, device: string): UserRoutes => ({
  name: `ns/${name}`,
  table: { name, rules: [{ dst: destination, routes: [{ dst: destination, dev: device }] }] },
});

describe('flows that are under way', () => {
  const flow = (source: string, destination: string) =>
    netns.exec(
      'conntrack',
      '-I',
      '-p',
      'udp',
      '-s',
      source,
      '-d',
      destination,
      '--sport',
      '7',
      '--dport',
      '9',
      '-t',
      '600',
    );
  const flows = async () =>
    [...(await netns.exec('conntrack', '-L', '-o', 'extended')).matchAll(/src=(\S+) dst=(\S+) sport=7 /g)]
      .map(([, source, destination]) => `${source} ${destination}`)
      .sort();
  const kept = '10.200.1.9 10.200.9.9';
  const exposed = [
    { ip: '10.71.1.5', exposed: '10.70.3.5' },
    { ip: '10.71.1.6', exposed: '10.70.3.6' },
  ];
  const [view] = gatewayModel.remote.pods;

  test('are forgotten by a gateway when an address stands for another, and no others', async () => {
    await host.apply(planGateway({ ...gatewayModel, exposed }));
    for (const line of [kept, '10.71.1.5 10.99.0.1', '10.99.0.1 10.70.3.5', '10.71.1.6 10.99.0.1'])
      await flow(...(line.split(' ') as [string, string]));
    await host.apply(
      planGateway({ ...gatewayModel, exposed: [exposed[1]!, { ...exposed[0]!, exposed: '10.70.3.7' }] }),
    );
    expect(await flows()).toEqual([kept, '10.71.1.6 10.99.0.1'].sort());
  });

  test('are forgotten by a gateway when a range has another name, also by a new process, and kept when nothing changes', async () => {
    await host.apply(planGateway(gatewayModel));
    await flow(...(kept.split(' ') as [string, string]));
    const restarted = openNamespace({ pid: netns.pid });
    await restarted.apply(planGateway({ ...gatewayModel, mtu: gatewayModel.mtu - 20 }));
    expect(await flows()).toEqual([kept]);
    const pods = [{ real: view!.real, view: '10.123.0.0/16' }];
    await restarted.apply(planGateway({ ...gatewayModel, remote: { ...gatewayModel.remote, pods } }));
    expect(await flows()).toEqual([]);
    await restarted.close();
  });

  test('are none of the business of a node, which has those of others as well', async () => {
    await host.apply(planNode(nodeModel));
    await flow(...(kept.split(' ') as [string, string]));
    const links = nodeModel.links.map((link) => ({ ...link, remoteCidrs: ['10.123.0.0/16'] }));
    await host.apply(planNode({ ...nodeModel, links }));
    expect(await flows()).toEqual([kept]);
  });
});

describe('applying a state', () => {
  test('a second time writes nothing', async () => {
    const model: NodeModel = {
      ...nodeModel,
      firewalls: [firewall('extra')],
      routes: [routes('more', '10.99.0.0/16', 'lo')],
    };
    const first = await host.apply(planNode(model));
    expect(first.wrote.length).toBeGreaterThan(5);
    expect(first.failed).toEqual([]);
    expect((await host.apply(planNode(model))).wrote).toEqual([]);
  });

  test('by a new process writes only what it cannot compare, and changes nothing', async () => {
    await host.apply(planNode(nodeModel));
    const before = await kernelState(netns);
    const restarted = openNamespace({ pid: netns.pid });
    const { wrote } = await restarted.apply(planNode(nodeModel));
    await restarted.close();
    expect(wrote).toEqual(['nft replace ip isthmus, ip6 isthmus']);
    expect(await kernelState(netns)).toBe(before);
  });

  test('after one more pod or one more exposed host is one command', async () => {
    await startWireGuard(netns);
    const keys = wireGuardKeys();
    const wireGuard = { ...gatewayModel.wireGuard, privateKeyFile: world.file(keys.privateKey) };
    const model = { ...gatewayModel, wireGuard };
    await host.apply(planGateway(model));
    const stray = { ip: '10.200.9.9', node: model.nodes[0]!.name };
    const withPod = { ...model, strayPods: [...model.strayPods, stray] };
    expect((await host.apply(planGateway(withPod))).wrote).toEqual([
      expect.stringMatching(/^route replace 10\.200\.9\.9\/32 encap ip id \d+ dst \S+ via \S+ dev liqo-overlay onlink/),
    ]);
    const exposed = [...model.exposed, { ip: '10.81.0.9', exposed: '10.70.9.9' }];
    expect((await host.apply(planGateway({ ...withPod, exposed }))).wrote).toEqual([
      'nft add element ip isthmus inward { 10.70.9.9 : 10.81.0.9 }\nadd element ip isthmus outward { 10.81.0.9 : 10.70.9.9 }',
    ]);
    expect((await host.apply(planGateway(model))).wrote).toHaveLength(2);
  });

  test('moves to another gateway by replacing routes in place', async () => {
    await host.apply(planNode(nodeModel));
    const [link] = nodeModel.links;
    const gateway = { ...link!.gateway!, underlayAddress: link!.replicaAddresses[1]! };
    const { wrote } = await host.apply(planNode({ ...nodeModel, links: [{ ...link!, gateway }] }));
    expect(wrote.every((line) => line.startsWith('route replace'))).toBe(true);
    expect(wrote).toHaveLength(link!.remoteCidrs.length + 1);
  });

  test('leaves the state of a fresh start behind, from any earlier state', async () => {
    await host.apply(planNode(nodeModel));
    const fresh = await kernelState(netns);
    const chaos = openNamespace({ pid: netns.pid });
    const other: NodeModel = {
      ...nodeModel,
      overlayAddress: '10.80.0.77',
      rulePriority: 333,
      links: nodeModel.links.map((link) => ({ ...link, vni: 99, mtu: 1400, remoteCidrs: ['10.123.0.0/16'] })),
      firewalls: [firewall('left-behind')],
      routes: [routes('left', '10.99.0.0/16', 'lo')],
    };
    await chaos.apply(planNode(other));
    await chaos.close();
    await netns.ip(['link del dev liqo-overlay', 'route add 10.98.0.0/16 dev lo table 1814300 proto 143']);
    const restarted = openNamespace({ pid: netns.pid });
    await restarted.apply(planNode(nodeModel));
    await restarted.close();
    expect(await kernelState(netns)).toBe(fresh);
  });
});

describe('what people configure', () => {
  test('that the kernel does not take is said, and stops nothing else', async () => {
    await netns.exec('nft', 'add', 'table', 'ip', 'foreign');
    const { failed, wrote } = await host.apply(
      planNode({
        ...nodeModel,
        firewalls: [
          firewall('good'),
          firewall('foreign'),
          firewall('worse', { chains: [{ ...firewall('x').table.chains[0]!, name: 'map' }] }),
          firewall('evil', { name: 'x { } table ip y' }),
        ],
        routes: [routes('fine', '10.99.0.0/16', 'lo'), routes('nowhere', '10.97.0.0/16', 'nodevice')],
      }),
    );
    expect(Object.fromEntries(failed.map(({ configuration, message }) => [configuration, message]))).toEqual({
      'ns/foreign': expect.stringContaining('exists and is not of Isthmus'),
      'ns/worse': expect.stringContaining('syntax error'),
      'ns/evil': expect.stringContaining('table.name is "x { } table ip y"'),
      'ns/nowhere': expect.stringContaining('nodevice'),
    });
    expect(wrote).toContain('nft replace ip good');
    expect(await netns.exec('nft', 'list', 'table', 'ip', 'foreign')).not.toContain('isthmus');
  });

  test('and then delete is removed, also when no process observed the change', async () => {
    await host.apply(planNode({ ...nodeModel, firewalls: [firewall('gone')] }));
    const restarted = openNamespace({ pid: netns.pid });
    expect((await restarted.apply(planNode(nodeModel))).wrote).toContain('nft delete ip gone');
    await restarted.close();
    expect(await netns.exec('nft', 'list', 'tables')).not.toContain('gone');
  });
});

describe('drift', () => {
  test.each([
    ['a rule is deleted', ['ip', 'rule', 'del', 'priority', '101']],
    ['a route is deleted', ['ip', 'route', 'flush', 'table', '1814300']],
    ['the device is deleted', ['ip', 'link', 'del', 'liqo-overlay']],
    ['the device is set down', ['ip', 'link', 'set', 'liqo-overlay', 'down']],
    ['the table is flushed', ['nft', 'flush', 'table', 'ip', 'isthmus']],
    ['everything is flushed', ['nft', 'flush', 'ruleset']],
  ])('is noticed and repaired when %s', async (_, [program, ...args]) => {
    await host.apply(planNode(nodeModel));
    const before = await kernelState(netns);
    let repairs = 0;
    const watch = host.watchDrift(
      () => {
        repairs += 1;
        void host.apply(planNode(nodeModel));
      },
      { everyMs: 100 },
    );
    await netns.exec(program!, ...args);
    await eventually('it is repaired', async () => (await kernelState(netns)) === before);
    watch.stop();
    expect(repairs).toBe(1);
  });

  test('in what ip programs is not polled for while nothing of ours changes, and found when another program changes it', async () => {
    const commands = commandsIn(`/proc/${netns.pid}/ns/net`);
    let processes = 0;
    const counted = <T>(work: Promise<T>): Promise<T> => {
      processes += 1;
      return work;
    };
    const same = <T>(work: T): T => work;
    const listening = openNamespace({
      pid: netns.pid,
      commands: {
        ...commands,
        run: (program, args) => (program === 'ip' ? counted : same)(commands.run(program, args)),
      },
    });
    await listening.apply(planNode(nodeModel));
    // Of ours only: IPv6 comes and goes by itself.
    const own = async (): Promise<string> => {
      const { devices, ...rest } = await host.read();
      const tables = await netns.exec('nft', '-s', 'list', 'ruleset');
      return JSON.stringify([[...devices.keys()], rest, tables]);
    };
    const before = await own();
    let repairs = 0;
    const watch = listening.watchDrift(
      () => {
        repairs += 1;
        void listening.apply(planNode(nodeModel));
      },
      { everyMs: 50 },
    );
    const counts: number[] = [];
    const isQuiet = (): boolean => {
      counts.push(processes);
      return counts.length > 10 && counts.at(-1) === counts.at(-10);
    };
    for (const [program, ...args] of [
      ['ip', 'rule', 'del', 'priority', '101'],
      ['nft', 'flush', 'table', 'ip', 'isthmus'],
      ['ip', 'neigh', 'flush', 'dev', 'liqo-overlay', 'nud', 'permanent'],
      ['ip', 'link', 'del', 'liqo-overlay'],
    ] as const) {
      counts.length = 0;
      await eventually('polling has stopped', isQuiet, { everyMs: 50 });
      await netns.exec(program, ...args);
      await eventually(`it is repaired after ${program} ${args.join(' ')}`, async () => (await own()) === before);
    }
    expect(repairs).toBeGreaterThanOrEqual(4);
    watch.stop();
    await listening.close();
  });

  test('is not what other people change', async () => {
    await host.apply(planNode(nodeModel));
    let repairs = 0;
    const watch = host.watchDrift(
      () => {
        repairs += 1;
      },
      { everyMs: 50 },
    );
    for (let i = 0; i < 10; i += 1) {
      await netns.nft(`table ip kube-proxy {\n chain c${i} {\n counter\n}\n}`);
      await netns.ip([`rule add priority ${500 + i} lookup main`, `route add 10.9${i}.0.0/16 dev lo`]);
    }
    watch.stop();
    expect(repairs).toBe(0);
  });
});

describe('the tunnel device', () => {
  const keys = wireGuardKeys();
  const peerKeys = wireGuardKeys();
  const stateOf = (peer: object | undefined, listenPort = 51_840) => {
    const privateKeyFile = world.file(keys.privateKey);
    const wireGuard = { ...gatewayModel.wireGuard, privateKeyFile, listenPort };
    return planGateway({ ...gatewayModel, wireGuard: { ...wireGuard, ...(peer ? { peer: peer as never } : {}) } });
  };

  test('of wireguard-go is waited for, then configured by its socket with the fewest changes', async () => {
    const early = await host.apply(stateOf(undefined));
    expect(early.awaitsTunnel).toBe(true);
    const process = await startWireGuard(netns);
    const peer = { publicKey: peerKeys.publicKey, endpoint: '192.0.2.1:51820', keepaliveSeconds: 5 };
    expect((await host.apply(stateOf(peer))).wrote).toEqual(
      expect.arrayContaining(['wireguard private key', 'wireguard listen port 51840']),
    );
    expect((await host.apply(stateOf(peer))).wrote).toEqual([]);
    const status = await host.tunnel('userspace').read();
    expect(status).toEqual({
      listenPort: 51_840,
      peers: [
        {
          publicKey: peerKeys.publicKey,
          endpoint: '192.0.2.1:51820',
          keepaliveSeconds: 5,
          lastHandshakeMs: undefined,
          receivedBytes: 0,
          sentBytes: expect.any(Number),
        },
      ],
    });
    const moved = { ...peer, endpoint: '192.0.2.2:51820' };
    expect((await host.apply(stateOf(moved))).wrote).toEqual([
      `wireguard peer ${peerKeys.publicKey} at 192.0.2.2:51820`,
    ]);
    await host.tunnel('userspace').shakeHands(peer);
    expect((await host.tunnel('userspace').read()).peers[0]?.endpoint).toBe('192.0.2.1:51820');
    expect((await host.apply(stateOf(undefined))).wrote).toEqual([`wireguard without peer ${peerKeys.publicKey}`]);
    process.kill('SIGKILL');
    await eventually('it is gone', async () => (await host.apply(stateOf(undefined))).awaitsTunnel);
  });

  test('is configured the same by wireguard-tools, as the device of a kernel is', async () => {
    await startWireGuard(netns);
    const files: string[] = [];
    const control = kernelTunnel(
      {
        must: (program, args) => netns.exec(program, ...args),
        file: async (name, content) => {
          files.push(content);
          return world.file(content, name);
        },
      },
      'liqo-tunnel',
    );
    const peer = { publicKey: peerKeys.publicKey, endpoint: '192.0.2.1:51820', keepaliveSeconds: 5 };
    const { tunnel } = stateOf(peer);
    expect(await control.configure(tunnel!)).toHaveLength(3);
    expect(await control.configure(tunnel!)).toEqual([]);
    expect(await control.read()).toEqual(await host.tunnel('userspace').read());
    expect(files.at(-1)).toBe(''); // the key does not stay
    await control.shakeHands(peer);
    expect((await control.read()).peers).toHaveLength(1);
  });
});

describe('sweeping', () => {
  test('leaves nothing of ours, and what is not ours', async () => {
    await netns.exec('nft', 'add', 'table', 'ip', 'cni');
    const before = await kernelState(netns);
    await startWireGuard(netns);
    const privateKeyFile = world.file(wireGuardKeys().privateKey);
    await host.apply(planGateway({ ...gatewayModel, wireGuard: { ...gatewayModel.wireGuard, privateKeyFile } }));
    const restarted = openNamespace({ pid: netns.pid });
    await restarted.apply(
      planNode({ ...nodeModel, firewalls: [firewall('user')], routes: [routes('user', '10.99.0.0/16', 'lo')] }),
    );
    const removed = await restarted.sweep();
    expect(removed).toContain('table ip isthmus');
    expect(await kernelState(netns)).toBe(before);
    expect(await restarted.sweep()).toEqual([]);
    await restarted.close();
    expect(existsSync(`/proc/${netns.pid}`)).toBe(true);
  });
});
