/**
 * Everything that a cluster and its nodes have: every object that the API server serves, whole, and what the kernel of each node has. Only what
 * is numbered or dated is not compared: versions, uids, times, and interfaces' numbers.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeApi } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { Netns } from '#test/harness/netns.ts';
import { must } from '#test/harness/program.ts';
import { everything } from '../whole-clusters/inventory.ts';

/** Texts by what they are of; of more than one line where a difference is better told by line. */
export type Traces = Readonly<Record<string, string>>;

const numbered = new Set(['resourceVersion', 'uid']);
const isTime = (value: unknown): boolean =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value);

const sorted = (value: object): object =>
  Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));

/** Of a Node: the kubelet lists images that were imported as late as it likes. */
function textOf(resource: string, object: KubeObject): string {
  const plain = (key: string, value: unknown): unknown => {
    if (numbered.has(key)) return undefined;
    // In the order of their times.
    if (key === 'managedFields' && Array.isArray(value)) return value.map((one) => JSON.stringify(one, plain)).sort();
    if (resource === 'nodes' && key === 'images') return undefined;
    if (isTime(value)) return 'a time';
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? sorted(value) : value;
  };
  return JSON.stringify(object, plain, 1);
}

export async function objectTraces(api: KubeApi): Promise<Traces> {
  const all = await everything(api);
  return Object.fromEntries(
    all.map(({ resource, object }) => {
      const { namespace = '', name } = object.metadata;
      return [`${resource} ${namespace}/${name}`, textOf(resource, object)];
    }),
  );
}

type Item = Readonly<Record<string, unknown>>;
/** Bridges and their ports show how far their timers are. */
const without =
  (...fields: readonly string[]) =>
  (item: Item): string =>
    JSON.stringify(sorted(item), (key, value: unknown) =>
      fields.includes(key) || key.endsWith('_timer') ? undefined : value,
    );

/** With the programs of this machine: an image has none of them. */
const inNetwork = async ({ pid }: Netns, ...line: readonly string[]): Promise<string> =>
  (await must('nsenter', ['-t', String(pid), '-n', ...line])).stdout;

export async function kernelTraces(netns: Netns): Promise<Traces> {
  const list = async (...args: readonly string[]): Promise<readonly Item[]> => {
    const text = await inNetwork(netns, 'ip', '-j', ...args);
    return text.trim() === '' ? [] : (JSON.parse(text) as Item[]);
  };
  const each = async (drop: readonly string[], ...args: readonly string[]): Promise<string> =>
    (await list(...args))
      .map(without(...drop))
      .sort()
      .join('\n');
  const device = ['ifindex', 'link_index', 'link_netnsid'];
  return {
    links: await each([...device, 'addr_info', 'txqlen'], '-d', 'link'),
    addresses: await each(device, 'address'),
    // Rules are tried in this order.
    rules: (await list('rule')).map(without()).join('\n'),
    routes: await each([], 'route', 'show', 'table', 'all'),
    'IPv6 rules': (await list('-6', 'rule')).map(without()).join('\n'),
    'IPv6 routes': await each([], '-6', 'route', 'show', 'table', 'all'),
    neighbours: await each([], 'neighbour', 'show', 'nud', 'permanent'),
    nft: rulesetText(await inNetwork(netns, 'nft', '-s', 'list', 'ruleset')),
  };
}

/** Network namespaces of pods have names by chance; which of them are there counts. */
export const namespacesOf = (node: Netns): Promise<string> =>
  node.exec('sh', '-c', 'ls /run/netns /var/run/netns 2>/dev/null | sort -u');

/**
 * kube-proxy writes chains, rules of which each has its own condition, and elements in no order of their own. A chain that it needs no more it empties
 * at once and deletes with the next change of some Service, which may be an hour away.
 */
function rulesetText(text: string): string {
  const tables = text.split(/^(?=table )/m);
  const isUnordered = (table: string): boolean => /^table \w+ kube-proxy /.test(table);
  return tables
    .map((table) => (isUnordered(table) ? kubeProxyText(table) : table))
    .sort()
    .join('');
}

const kubeProxyText = (table: string): string => {
  const inside = table.trimEnd().replace(/\n\}$/, '');
  const elements = inside.replaceAll(/elements = \{([^}]*)\}/g, (_, all: string) => {
    const items = all.split(',').map((item) => item.replaceAll(/\s+/g, ' ').trim());
    return `elements = { ${items.sort().join(', ')} }`;
  });
  const [head = '', ...blocks] = elements.split(/\n\n?(?=\t(?:chain|set|map) )/);
  const kept = blocks.map((block) => block.trimEnd()).filter((block) => !emptied.test(block));
  return [head, ...kept.sort()].join('\n');
};

/** `service-`, `endpoint-`, `external-`, … with a hash of what it is for. */
const emptied = /^\tchain [a-z]+-[A-Z0-9]{8}-\S+ \{\s*\}$/;

/** What is there once two looks in a row, `everyMs` apart, have seen the same. */
export async function waitUntilStable(
  what: string,
  look: () => Promise<Traces>,
  { withinMs, everyMs }: { readonly withinMs: number; readonly everyMs: number },
): Promise<Traces> {
  let last = await look();
  await delay(everyMs);
  return eventually(
    `${what} to come to rest`,
    async () => {
      const now = await look();
      const changed = traceDifferences(last, now);
      last = now;
      if (changed.length > 0) throw new Error(changed.join('\n'));
      return now;
    },
    { withinMs, everyMs },
  );
}

/** What is not the same in both, as lines with their first character, like `diff`. */
export function traceDifferences(before: Traces, after: Traces): string[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return keys.flatMap((key) => {
    const [was, is] = [before[key], after[key]];
    if (was === is) return [];
    if (was === undefined) return [`+ ${key}`];
    if (is === undefined) return [`- ${key}`];
    const lost = missing(was, is).map((line) => `- ${key}: ${line.trim()}`);
    const come = missing(is, was).map((line) => `+ ${key}: ${line.trim()}`);
    return lost.length + come.length === 0 ? [`~ ${key}: ${reordered(was, is)}`] : [...lost, ...come];
  });
}

/** Lines of `text` that `other` has less often. */
function missing(text: string, other: string): string[] {
  const left = new Map<string, number>();
  for (const line of other.split('\n')) left.set(line, (left.get(line) ?? 0) + 1);
  return text.split('\n').filter((line) => {
    const count = left.get(line) ?? 0;
    left.set(line, count - 1);
    return count <= 0;
  });
}

function reordered(was: string, is: string): string {
  const lines = is.split('\n');
  const first = was.split('\n').findIndex((line, at) => line !== lines[at]);
  return `the same lines in another order, from ${lines[first]?.trim()} on`;
}
