/** How long nothing passes when the only pod of a gateway loses its process and the kubelet starts it again, on either side of a link. */
import { formatAddress, parseAddress, parseCidr } from '#shared/domain/cidr.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { NetnsFixture, type Streamed } from '#test/harness/netns.ts';
import { podPlace } from '#test/system/network/test-pods.ts';
import { container, pod } from '#test/system/whole-clusters/workloads.ts';
import { type BenchClusters, names } from './peering-clusters.ts';

const port = 9000;
const namespace = 'default';
const streamMs = 20_000;

/** Seconds without an answer to a datagram each 10 ms, for both sides; the clusters are to be linked. */
export async function gatewayRestarts(
  bench: BenchClusters,
  log: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  const netns = new NetnsFixture();
  try {
    const [near, far] = [await place(bench, 'consumer', netns), await place(bench, 'provider', netns)];
    await far.netns.serve(port);
    const address = await viewOf(bench, far.ip);
    await eventually('the link carries packets', () => near.netns.who(address, port), { withinMs: 30_000 });
    const seconds: Record<string, number> = {};
    for (const side of ['consumer', 'provider'] as const) {
      const pids = bench.world.ownPids(names[side]).gateway ?? [];
      if (pids.length !== 1) throw new Error(`${side} has ${pids.length} gateway processes, one was expected`);
      const agent = await near.netns.agent();
      const streaming = agent.ask('stream', { address, port, everyMs: 10, forMs: streamMs });
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      const { longestGapMs, sent, answered } = (await streaming) as Streamed;
      log(
        `only gateway pod of the ${side} killed: ${(longestGapMs / 1000).toFixed(2)} s, ${answered} of ${sent} answered`,
      );
      if (longestGapMs >= streamMs)
        throw new Error(`nothing passed for ${streamMs / 1000} s after the gateway of the ${side}`);
      seconds[`interruption, only gateway pod of the ${side} killed`] = longestGapMs / 1000;
    }
    return seconds;
  } finally {
    await netns.close();
  }
}

async function place(bench: BenchClusters, side: 'consumer' | 'provider', netns: NetnsFixture) {
  const { api } = bench[side];
  const ref = { namespace, name: 'crossing' };
  await api.create(
    pods,
    pod(namespace, ref.name, [container(['serve'])], { nodeSelector: { 'kubernetes.io/os': 'linux' } }) as Pod,
  );
  const running = await eventually('the pod runs', async () => {
    const found = await api.get(pods, ref);
    return found?.status?.phase === 'Running' && found.status.podIP ? found : undefined;
  });
  return podPlace(netns, running);
}

/** What the consumer calls an address of the provider's pods. */
async function viewOf({ consumer }: BenchClusters, ip: string): Promise<string> {
  const [configuration] = await consumer.api.list(networkKinds.configurations, {
    namespace: `liqo-tenant-${names.provider}`,
  });
  const real = parseCidr(configuration?.spec.remote.cidr.pod[0] ?? '');
  const view = parseCidr(configuration?.status?.remote?.cidr.pod[0] ?? '');
  const address = parseAddress(ip);
  if (real === undefined || view === undefined || address === undefined)
    throw new Error(`the Configuration of ${names.provider} does not say what ${ip} is called here`);
  return formatAddress(view.base + address - real.base);
}
