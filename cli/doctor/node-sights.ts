/** What only nodes and gateways themselves can tell: read by a program of a moment in their own pods, in whose network namespaces the tables are. */
import type { KubeTarget } from '#cli/cluster/kubeconfig-files.ts';
import { podExec } from '#cli/cluster/pod-exec.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkLabel, nodeProcessLabel } from '#shared/domain/network-keys.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { GatewaySight, NodeSight } from './facts.ts';

/** Prints one line of JSON. The image has no shell. */
const program = `
const { readFileSync } = require('node:fs');
const read = (name) => { try { return Number(readFileSync('/proc/sys/net/netfilter/' + name, 'utf8')); } catch { return -1; } };
console.log(JSON.stringify({ count: read('nf_conntrack_count'), most: read('nf_conntrack_max') }));
`;
const withinMs = 12_000;
/** In a large cluster a sample. */
const mostNodes = 20;

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: state }) => type === 'Ready' && state === 'True') ?? false;

export async function lookIntoNodes(
  target: KubeTarget,
  ownPods: readonly Pod[],
  signal: AbortSignal,
): Promise<NodeSight[]> {
  const processes = ownPods.filter((pod) => pod.metadata.labels?.[nodeProcessLabel] !== undefined && isReady(pod));
  return Promise.all(processes.slice(0, mostNodes).map((pod) => lookInto(target, pod, signal)));
}

async function lookInto(target: KubeTarget, pod: Pod, signal: AbortSignal): Promise<NodeSight> {
  const node = pod.spec?.nodeName ?? '';
  try {
    const { count, most } = (await run(target, pod, program, signal)) as {
      readonly count: number;
      readonly most: number;
    };
    return { node, ...(count >= 0 && most > 0 && { connections: { count, most } }) };
  } catch (error) {
    return { node, failure: messageOf(error) };
  }
}

/** What the program printed. */
async function run(target: KubeTarget, { metadata, spec }: Pod, text: string, signal: AbortSignal): Promise<unknown> {
  const lines: string[] = [];
  await podExec(target, {
    namespace: metadata.namespace ?? '',
    pod: metadata.name,
    container: spec?.containers[0]?.name ?? '',
    command: ['/usr/local/bin/node', '-e', text],
    onLine: (line) => void lines.push(line),
    signal: abortsWith(signal, AbortSignal.timeout(withinMs)),
  });
  return JSON.parse(lines[0] ?? '');
}

/** A gateway that is not heard dials from another port after a while: what the peer sends to the old one is counted as NoPorts by the kernel. */
const strayProgram = `
const { readFileSync } = require('node:fs');
const strays = () => { const [names, values] = readFileSync('/proc/net/snmp', 'utf8').split('\\n').filter((line) => line.startsWith('Udp: ')).map((line) => line.split(' '));
  return Number(values[names.indexOf('NoPorts')]); };
`;
/** While there is no session, WireGuard tries again every 5 s; the columns of `wg show dump` that count are 6 (received) and 7 (sent). */
const gatewayProgram = `${strayProgram}
const { execFileSync } = require('node:child_process');
const read = () => execFileSync('wg', ['show', 'all', 'dump'], { encoding: 'utf8' }).split('\\n').map((line) => line.split('\\t')).filter((cells) => cells.length > 7)
  .reduce((sum, cells) => [sum[0] + Number(cells[6]), sum[1] + Number(cells[7])], [0, 0]);
const [received, sent] = read();
const before = strays();
setTimeout(() => { const [r, s] = read(); console.log(JSON.stringify({ received: r - received, sent: s - sent, strays: strays() - before })); }, 6000);
`;

/** In the network of its node: a peer that is not heard dials the address of the node as well, at a port at which nothing listens. */
const nodeProgram = `${strayProgram}
const before = strays();
setTimeout(() => console.log(JSON.stringify(strays() - before)), 6000);
`;

/** Of links that are down: which way bytes go. */
export async function lookIntoGateways(
  target: KubeTarget,
  { ownPods, connections }: { readonly ownPods: readonly Pod[]; readonly connections: readonly Connection[] },
  signal: AbortSignal,
): Promise<GatewaySight[]> {
  const down = connections.filter(({ status }) => status?.value !== 'Connected');
  const sights = down.map(async ({ metadata }): Promise<GatewaySight[]> => {
    const peer = metadata.labels?.[label.remoteClusterId];
    const pod = ownPods.find(
      (one) => one.metadata.namespace === metadata.namespace && one.metadata.labels?.[networkLabel.active] === 'true',
    );
    if (peer === undefined || pod === undefined || !isReady(pod)) return [];
    const node = ownPods.find(
      (one) =>
        one.metadata.labels?.[nodeProcessLabel] !== undefined &&
        one.spec?.nodeName === pod.spec?.nodeName &&
        isReady(one),
    );
    try {
      const [seen, nodeStrays] = await Promise.all([
        run(target, pod, gatewayProgram, signal) as Promise<Omit<GatewaySight, 'peer' | 'nodeStrays'>>,
        node === undefined ? 0 : (run(target, node, nodeProgram, signal) as Promise<number>).catch(() => 0),
      ]);
      return [{ peer, ...seen, nodeStrays }];
    } catch {
      return [];
    }
  });
  return (await Promise.all(sights)).flat();
}
