import { describe, expect, test } from 'vitest';
import { bridgePortOf, createBridgePortTable } from './bridge-ports.ts';

const answering = (answers: Readonly<Record<string, unknown>>) => ({
  run: async (_: string, args: readonly string[]) => {
    const answer = answers[args.slice(2).join(' ')];
    return answer === undefined
      ? { code: 1, stdout: '', stderr: 'Device does not exist.' }
      : { code: 0, stdout: JSON.stringify(answer), stderr: '' };
  },
});
const pod = answering({
  '-4 address show to 10.200.1.101/32': [{}, { ifindex: 2, ifname: 'eth0', link_index: 12 }],
});
const veths = (...devices: readonly object[]) => ({ 'link show type veth': devices });
const master = (kind: string) => ({ 'link show dev cni0': [{ ifname: 'cni0', linkinfo: { info_kind: kind } }] });

describe('the cable of a gateway pod', () => {
  test('ends at the port of the bridge that has its other end', async () => {
    const node = answering({
      ...veths(
        { ifindex: 11, ifname: 'vethaa', link_index: 2, master: 'cni0' },
        { ifindex: 12, ifname: 'vethbb', link_index: 2, master: 'cni0' },
      ),
      ...master('bridge'),
    });
    expect(await bridgePortOf('10.200.1.101', pod, node)).toEqual({ bridge: 'cni0', port: 'vethbb' });
  });

  test.each([
    ['a veth without a bridge (ptp, Calico, Cilium)', veths({ ifindex: 12, ifname: 'cali1', link_index: 2 })],
    [
      'a device of that number that is the other end of something else',
      { ...veths({ ifindex: 12, ifname: 'vethbb', link_index: 7, master: 'cni0' }), ...master('bridge') },
    ],
    [
      'a master that is no bridge',
      { ...veths({ ifindex: 12, ifname: 'vethbb', link_index: 2, master: 'cni0' }), ...master('vrf') },
    ],
    ['nothing at all', {}],
  ])('is no port of a bridge: %s', async (_, node) => {
    expect(await bridgePortOf('10.200.1.101', pod, answering(node))).toBeUndefined();
  });

  test('wakes the node process when it has been looked for, changes or is gone, and at no other time', () => {
    const book = createBridgePortTable();
    let woken = 0;
    book.serves({
      wake: () => {
        woken += 1;
      },
    });
    const port = { bridge: 'cni0', port: 'vethbb' };
    book.found('uid-1', undefined);
    expect([woken, [...book.now()]]).toEqual([1, [['uid-1', undefined]]]);
    book.found('uid-1', undefined);
    expect(woken).toBe(1);
    book.found('uid-1', port);
    book.found('uid-1', { ...port });
    expect([woken, [...book.now()]]).toEqual([2, [['uid-1', port]]]);
    book.forget('uid-1');
    book.forget('uid-1');
    expect([woken, [...book.now()]]).toEqual([3, []]);
  });
});
