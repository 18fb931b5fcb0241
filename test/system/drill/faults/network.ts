/** Faults of the link between two clusters and of what it stands on. */
import type { ClusterName } from '../../whole-clusters/stage.ts';
import { both, doing, type Fault, having, insist, must } from '../fault.ts';

const table = 'isthmus_drill';
/** Of the service that discards what it gets; nothing listens there. */
const discardPort = 9;

/** Rules in the node's network, in a chain before anything is forwarded; the table goes with the fault. */
const dropping =
  (cluster: ClusterName, ...rules: readonly string[]): Fault['inject'] =>
  async ({ stage }) => {
    const [node] = stage.world.cluster(cluster).nodes;
    const nft = async (...args: readonly string[]): Promise<void> => void (await node?.exec('nft', args));
    await nft('add', 'table', 'ip', table);
    await nft('add', 'chain', 'ip', table, 'pre', '{ type filter hook prerouting priority -400; }');
    for (const rule of rules) await nft('add', 'rule', 'ip', table, 'pre', ...rule.split(' '));
    return { undo: () => nft('delete', 'table', 'ip', table) };
  };

const nodeIp = async (ground: Parameters<Fault['inject']>[0], cluster: ClusterName): Promise<string> =>
  ground.stage.world.cluster(cluster).nodes[0]?.ip ?? '';

/** Sends one datagram to each of so many addresses of the node itself: flows without an answer, until the table holds no more. */
const fillTable = (most: number): string => `
const socket = require('node:dgram').createSocket('udp4');
socket.on('error', () => undefined);
let sent = 0;
const more = () => {
  for (let i = 0; i < 500; i++, sent++)
    socket.send('x', ${discardPort}, \`127.\${1 + (sent >> 16)}.\${(sent >> 8) & 255}.\${sent & 255}\`, () => undefined);
  if (sent < ${most}) setTimeout(more, 1); else setTimeout(() => process.exit(), 500);
};
socket.bind(0, more);`;

export const networkFaults: readonly Fault[] = [
  {
    what: 'UDP dropped both ways',
    says: 'link_silent',
    inject: async (ground) =>
      dropping(
        'rome',
        `ip saddr ${await nodeIp(ground, 'milan')} meta l4proto udp drop`,
        'ip saddr 10.0.0.0/8 udp dport 30000-32767 drop',
      )(ground),
  },
  {
    what: 'UDP dropped one way, towards the consumer',
    says: 'link_one_way',
    inject: async (ground) =>
      dropping('rome', `ip saddr ${await nodeIp(ground, 'milan')} meta l4proto udp drop`)(ground),
  },
  {
    what: 'UDP dropped one way, towards the provider',
    says: 'link_one_way',
    inject: async (ground) =>
      dropping('milan', `ip saddr ${await nodeIp(ground, 'rome')} meta l4proto udp drop`)(ground),
  },
  {
    what: 'MTU black hole between the clusters',
    says: 'link_mtu',
    async inject(ground) {
      const { undo } = await dropping(
        'milan',
        `ip saddr ${await nodeIp(ground, 'rome')} meta l4proto udp meta length > 1100 drop`,
      )(ground);
      return { undo, asking: { probe: true } };
    },
  },
  {
    what: 'a third of the packets lost',
    says: 'link_lossy',
    inject: async (ground) =>
      dropping(
        'rome',
        `ip saddr ${await nodeIp(ground, 'milan')} meta l4proto udp numgen random mod 100 < 33 drop`,
      )(ground),
  },
  {
    what: 'connection table of the node of the provider full',
    says: 'conntrack_full',
    async inject({ stage }) {
      const [node] = stage.world.cluster('milan').nodes;
      const run = (...args: readonly string[]) => node?.exec('sh', ['-c', args.join(' ')]) ?? '';
      // How many there may be is a setting of the machine; for how long each is kept, one of the node.
      const timeout = '/proc/sys/net/netfilter/nf_conntrack_udp_timeout';
      const before = (await run('cat', timeout)).trim();
      const most = Number(await run('cat /proc/sys/net/netfilter/nf_conntrack_max'));
      await run(`echo 1200 > ${timeout}`);
      await node?.exec(process.execPath, ['-e', fillTable(most)]);
      return {
        async undo() {
          await run(`echo ${before} > ${timeout}`);
          // Fails where it deletes none: the table would stay full for what comes after.
          await run(`conntrack -D -p udp --orig-port-dst ${discardPort} > /dev/null`);
        },
      };
    },
  },
  {
    what: 'NetworkPolicy selects the gateway',
    says: 'traffic_policy',
    inject: having('milan', {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'drill-deny', namespace: 'liqo-tenant-rome' },
      spec: { podSelector: {}, policyTypes: ['Ingress'] },
    }),
  },
  {
    what: 'no node for the gateway: its node is cordoned and its pod lost',
    says: 'agent_unscheduled',
    inject: both(
      async (ground) => {
        await must(ground, 'rome', 'cordon', 'rome-1');
        return { undo: () => insist(ground, 'rome', 'uncordon', 'rome-1') };
      },
      doing(
        'rome',
        'delete',
        'pod',
        '-n',
        'liqo-tenant-milan',
        '-l',
        'networking.liqo.io/component=gateway',
        '--wait=false',
      ),
    ),
  },
  {
    what: 'firewall drops what pods send through the link',
    says: 'traffic_blocked',
    async inject(ground) {
      const { undo } = await dropping('milan', 'ip protocol tcp tcp dport 8080 drop')(ground);
      return { undo, asking: { probe: true } };
    },
  },
  {
    what: 'provider moved: its API server no longer answers where the consumer looks for it',
    says: 'provider_unreachable',
    inject: async (ground) => dropping('milan', `ip saddr ${await nodeIp(ground, 'rome')} tcp dport 6443 drop`)(ground),
  },
  {
    what: 'broker away',
    says: 'broker_away',
    async inject({ stage }) {
      await stage.world.broker.stop();
      return { undo: () => stage.world.broker.start() };
    },
  },
];
