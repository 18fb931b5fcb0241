/** Tunnel endpoints with real wireguard-go, each behind a box that translates or nothing, and the dialling of the node process between them. */
import { userspaceTunnel } from '#agent/network/kernel/wireguard.ts';
import { encodePing } from '#agent/network/link/ping/message.ts';
import type { SourcePort } from '#agent/network/link/tunnel/decide.ts';
import { type LinkReport, runLink } from '#agent/network/link/tunnel/run.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { connect, type Netns, type NetnsFixture } from '../../../harness/netns.ts';
import { startWireGuard, wireGuardKeys } from '../../../harness/netns-cluster.ts';

export const wireGuardPort = 51_840;
export const port = 8080;
export type Nat = 'none' | 'port-preserving' | 'fully random';

export interface Endpoint {
  readonly netns: Netns;
  readonly tunnelAddress: string;
  readonly keys: ReturnType<typeof wireGuardKeys>;
  readonly privateKeyFile: string;
  readonly gate: Netns;
  /** On the switch between all of them. */
  readonly cable: string;
  publicAddress: string;
  reports: LinkReport[];
}

let serial = 0;

/** A gateway, and in front of it a box that translates (or nothing). Both sides have the same inner range. */
export async function endpoint(clusters: NetnsFixture, net: Netns, nat: Nat, number: 1 | 2): Promise<Endpoint> {
  const id = ++serial;
  const publicAddress = `198.18.${id}.1`;
  const cable = `w${id}`;
  const gate = await clusters.add(`gate${id}`);
  await connect({ netns: gate, device: 'wan' }, { netns: net, device: cable });
  await net.ip([`link set dev ${cable} master under`]);
  await gate.ip([`address add ${publicAddress}/15 dev wan`]);
  let netns = gate;
  if (nat !== 'none') {
    netns = await clusters.add(`end${id}`);
    await connect({ netns: gate, device: 'lan' }, { netns, device: 'eth0' });
    await gate.ip(['address add 192.168.1.1/24 dev lan']);
    await netns.ip(['address add 192.168.1.10/24 dev eth0', 'route add default via 192.168.1.1']);
    await gate.sysctl({ 'net.ipv4.ip_forward': 1 });
    await gate.nft(`table ip box {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    oifname "wan" masquerade ${nat === 'fully random' ? 'fully-random' : ''}
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
    ct state established,related accept
    iifname "lan" accept
  }
  chain input {
    type filter hook input priority filter; policy drop;
    ct state established,related accept
    iifname "lan" accept
  }
}`);
  }
  const tunnelAddress = `169.254.18.${number}`;
  await startWireGuard(netns);
  await netns.ip([`address add ${tunnelAddress}/30 dev liqo-tunnel`, 'link set dev liqo-tunnel up mtu 1340']);
  await netns.serve(port);
  netns.start(process.execPath, new URL('liqo-ping.mjs', import.meta.url).pathname, '12345');
  const keys = wireGuardKeys();
  const privateKeyFile = clusters.file(keys.privateKey);
  return { netns, tunnelAddress, keys, privateKeyFile, gate, cable, publicAddress, reports: [] };
}

export async function configure(own: Endpoint, peer: Endpoint, listenPort = wireGuardPort): Promise<void> {
  await userspaceTunnel(own.netns.pid, 'liqo-tunnel').configure({
    name: 'liqo-tunnel',
    implementation: 'userspace',
    mtu: 1340,
    address: `${own.tunnelAddress}/30`,
    listenPort,
    privateKeyFile: own.privateKeyFile,
    peer: { publicKey: peer.keys.publicKey },
  });
}

export interface Keeping {
  readonly candidates: () => readonly string[];
  /** Another port is dialled from after long silence. */
  readonly moves?: boolean;
}

/** As the node process does it for a gateway pod, until the signal aborts. */
export function keep(
  own: Endpoint,
  peer: Endpoint,
  { candidates, moves = false }: Keeping,
  signal: AbortSignal,
): Promise<void> {
  const tunnel = userspaceTunnel(own.netns.pid, 'liqo-tunnel');
  const { publicKey } = peer.keys;
  let where: SourcePort = 'own';
  const source = {
    now: () => where,
    async move(to: SourcePort) {
      where = to;
      await configure(own, peer, to === 'own' ? wireGuardPort : 52_000 + Math.floor(Math.random() * 1_000));
    },
    random: Math.random,
  };
  let hear: ((timeStamp: string, bytes: number) => void) | undefined;
  return runLink(
    {
      clock: systemClock,
      log: silentLog,
      resolve: async () => [],
      ping: async (timeStamp, bytes) => {
        const ping = encodePing({ clusterID: 'peer', msgType: 'PING', timeStamp }, bytes);
        const agent = await own.netns.agent();
        const requested = {
          address: peer.tunnelAddress,
          port: 12345,
          hex: Buffer.from(ping).toString('hex'),
          timeoutMs: 2_000,
        };
        const answer = (await agent.ask('udp', requested).catch(() => ({ answered: false }))) as {
          answered: boolean;
          timeStamp?: string;
        };
        if (answer.answered) hear?.(answer.timeStamp ?? '', ping.length);
      },
      onPong: (listener) => {
        hear = listener;
        return () => undefined;
      },
      look: async () => {
        const found = (await tunnel.read()).peers.find((one) => one.publicKey === publicKey);
        return (
          found && {
            receivedBytes: found.receivedBytes,
            ...(found.endpoint === undefined ? {} : { endpoint: found.endpoint }),
            ...(found.lastHandshakeMs === undefined ? {} : { handshakeAt: found.lastHandshakeMs }),
          }
        );
      },
      dial: (to) => tunnel.shakeHands({ publicKey, endpoint: to, keepaliveSeconds: 1 }),
      candidates,
      isDialled: own.tunnelAddress.endsWith('.2'),
      ...(moves ? { source } : {}),
      size: { configured: () => 1340, inEffect: () => 1340, measuring: async () => undefined },
      report: (report) => own.reports.push(report),
    },
    signal,
  );
}

export const isUp = (own: Endpoint) => () => own.reports.at(-1)?.value === 'Connected';

/** What all of them are plugged into. */
export async function openSwitch(clusters: NetnsFixture): Promise<Netns> {
  const net = await clusters.add('net');
  await net.ip(['link add name under type bridge', 'link set dev under up']);
  return net;
}
