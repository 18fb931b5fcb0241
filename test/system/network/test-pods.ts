/** Where traffic of these tests starts and ends: real pods and real nodes of a bed, entered by a process that lives there. */
import { readdirSync, readFileSync } from 'node:fs';
import { isOfPod } from '#agent/runtime/pod-processes.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { Netns, type NetnsFixture } from '#test/harness/netns.ts';
import { waitUntilStable } from '#test/harness/wait-until-stable.ts';
import { runningComponents } from '#test/testbed/processes.ts';
import { slotOf } from '#test/testbed/slots.ts';
import type { BedNode } from '#test/testbed/testbed.ts';

export interface Place {
  /** As a failed assertion calls it. */
  readonly name: string;
  /** In its own cluster. */
  readonly ip: string;
  readonly node: string;
  readonly netns: Netns;
}

/** Any process of the pod: all are in its network namespace. */
export function podPlace(clusters: NetnsFixture, pod: Pod): Place {
  const { name, uid = '' } = pod.metadata;
  const ip = pod.status?.podIP ?? '';
  return { name, ip, node: pod.spec?.nodeName ?? '', netns: new Netns(clusters, name, processOf(uid)) };
}

export function nodePlace(clusters: NetnsFixture, bedDir: string, { name, ip }: BedNode): Place {
  const pid = runningComponents(slotOf(bedDir) ?? -1).get(`${name}/init`);
  if (pid === undefined) throw new Error(`node ${name} does not run`);
  return { name, ip, node: name, netns: new Netns(clusters, name, pid) };
}

function processOf(podUid: string): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const found = pids.find((pid) => {
    try {
      return isOfPod(readFileSync(`/proc/${pid}/cgroup`, 'utf8'), podUid);
    } catch {
      return false; // it ended while we looked
    }
  });
  if (found === undefined) throw new Error(`no process of pod ${podUid} runs on this machine`);
  return Number(found);
}

/**
 * Words for addresses that routes lead to, where which one it is does not matter. Addresses of Services that one process answers are left out of the
 * rule for those that are answered on another node: which node that is changes with the leader of the controllers.
 */
export type Words = ReadonlyMap<string, string>;

/** What the kernel of a node has besides the veth pairs of pods: devices, policy rules, routes of every table, nft tables with what is in ours. */
async function kernelState({ netns }: Place, words: Words = new Map()): Promise<string> {
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await netns.exec('ip', '-j', ...args)) as T;
  const links = await json<{ ifname: string }[]>('link');
  const all = await json<Record<string, unknown>[]>('route', 'show', 'table', 'all');
  const routes = all.map(
    (route): Record<string, unknown> => ({
      ...route,
      dst: words.get(String(route.dst)) ?? route.dst,
    }),
  );
  const rules = await json<unknown[]>('rule');
  const tables = (await netns.exec('nft', 'list', 'tables')).trim().split('\n').sort();
  const own = await netns.tryExec('nft', '-s', 'list', 'table', 'ip', 'isthmus');
  const lines = [
    ...links.map(({ ifname }) => `link ${ifname}`).filter((line) => !line.startsWith('link veth')),
    ...rules.map((rule) => `rule ${JSON.stringify(rule)}`),
    ...routes
      .filter(({ type }) => type !== 'local' && type !== 'broadcast')
      .map((route) => `route ${JSON.stringify(route)}`),
    ...tables,
  ];
  const nft = own.stdout.replace(
    /(iifname "liqo-overlay" ct original ip daddr )(?:\{ ([^}]+) \}|(\S+))/g,
    (_rule, start: string, several: string | undefined, one: string | undefined) =>
      `${start}${(several ?? one ?? '').split(', ').filter((address) => !words.has(address))}`,
  );
  return [...lines.filter((line) => !line.includes('veth')).sort(), nft].join('\n');
}

/** Rejects with every line that differs. */
export async function isKernelState(place: Place, wanted: string, words?: Words): Promise<true> {
  const [is, should] = [(await kernelState(place, words)).split('\n'), wanted.split('\n')];
  const differing = [
    ...is.filter((line) => !should.includes(line)).map((line) => `has ${line.trim()}`),
    ...should.filter((line) => !is.includes(line)).map((line) => `lacks ${line.trim()}`),
  ];
  if (differing.length > 0) throw new Error(`${place.name} ${differing.join('\n')}`);
  if (is.join('\n') !== wanted) throw new Error(`${place.name} has the same lines in another order or number`);
  return true;
}

/** What the kernels have once they have come to rest: a node learns of a change a moment after its cluster. */
export const settledKernels = (
  places: readonly Place[],
  words: () => Promise<Words> = async () => new Map(),
): Promise<readonly string[]> =>
  waitUntilStable('the kernels of the nodes', async () => {
    const now = await words();
    return Promise.all(places.map((place) => kernelState(place, now)));
  });
