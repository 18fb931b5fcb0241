/** Everything that exists in a cluster, of every kind that its API server serves, with the marks of ours on each: what a peering leaves behind is a difference of two. */
import type { KubeApi } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { eventually } from '#test/harness/eventually.ts';

interface ResourceList {
  readonly resources: readonly { readonly name: string; readonly verbs: readonly string[] }[];
}
interface GroupList {
  readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[];
}
interface ObjectPage {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly KubeObject[];
}

export interface Found {
  /** As in `pods` or `rolebindings.rbac.authorization.k8s.io`. */
  readonly resource: string;
  readonly object: KubeObject;
}

/**
 * Kinds that tell of the past, or of the moment: a DaemonSet keeps a revision of each update. A TrustedPeer outlives its peering: it says which key the peer has, should
 * it come back.
 */
const passing = new Set([
  'controllerrevisions.apps',
  'events',
  'events.events.k8s.io',
  'componentstatuses',
  'trustedpeers.isthmus.dev',
  'pods.metrics.k8s.io',
  'nodes.metrics.k8s.io',
]);

async function json<T>(api: KubeApi, path: string): Promise<T> {
  return JSON.parse(await api.getPath(path)) as T;
}

async function listed(api: KubeApi, path: string): Promise<KubeObject[]> {
  const items: KubeObject[] = [];
  let more: string | undefined = '';
  while (more !== undefined) {
    const page: ObjectPage = await json(api, `${path}?limit=500${more && `&continue=${encodeURIComponent(more)}`}`);
    items.push(...page.items);
    more = page.metadata.continue || undefined;
  }
  return items;
}

export async function everything(api: KubeApi): Promise<Found[]> {
  const { groups } = await json<GroupList>(api, '/apis');
  const roots = [
    { path: '/api/v1', group: '' },
    ...groups.map(({ preferredVersion: { groupVersion } }) => ({
      path: `/apis/${groupVersion}`,
      group: groupVersion.slice(0, groupVersion.indexOf('/')),
    })),
  ];
  const found: Found[] = [];
  for (const { path, group } of roots) {
    const { resources } = await json<ResourceList>(api, path);
    for (const { name, verbs } of resources) {
      const resource = group === '' ? name : `${name}.${group}`;
      if (!verbs.includes('list') || passing.has(resource)) continue;
      const objects = await listed(api, `${path}/${name}`);
      found.push(...objects.map((object) => ({ resource, object })));
    }
  }
  return found;
}

/** Domains of ours, in keys of labels and annotations, finalizers and the API groups of owners. */
const isOurs = (text: string): boolean => /(^|[./])(liqo\.io|isthmus\.dev)(\/|$)/.test(text);

export function marksOf({ metadata }: KubeObject): string[] {
  return [
    ...Object.keys(metadata.labels ?? {}),
    ...Object.keys(metadata.annotations ?? {}),
    ...(metadata.finalizers ?? []),
    ...(metadata.ownerReferences ?? []).map(({ apiVersion, kind }) => `${apiVersion}/${kind}`),
  ]
    .filter(isOurs)
    .sort();
}

/** Our agent may be replaced meanwhile, and its pods' names with it. */
export const ofTheAgentItself = ({ resource, object }: Found): boolean =>
  object.metadata.namespace === systemNamespace && /^(pods|replicasets\.apps|endpointslices\..*)$/.test(resource);

/** A pod that waits for a node runs nowhere: its Deployment will ask for it as long as it exists. */
const waitsForNode = ({ resource, object }: Found): boolean =>
  resource === 'pods' && !(object as KubeObject & { spec?: { nodeName?: string } }).spec?.nodeName;

export const lineOf = ({ resource, object }: Found): string => {
  const { namespace, name } = object.metadata;
  const marks = marksOf(object);
  return `${resource} ${namespace === undefined ? '' : `${namespace}/`}${name}${marks.length ? ` [${marks.join(' ')}]` : ''}`;
};

/** One line per object: what it is and which marks of ours it bears. */
export async function inventory(api: KubeApi): Promise<Set<string>> {
  const all = await everything(api);
  return new Set(all.filter((one) => !ofTheAgentItself(one) && !waitsForNode(one)).map(lineOf));
}

/** What is there now and was not before, and what bears other marks than before. */
export async function leftovers(api: KubeApi, before: ReadonlySet<string>): Promise<string[]> {
  return [...(await inventory(api))].filter((line) => !before.has(line)).sort();
}

/**
 * Nothing of a peering that has ended is left, but for what `isUsers`. What bears a mark of ours must be gone when its end is told; what Kubernetes
 * collects after that, such as the Lease of a node that went, it collects in its own time. The slowest is the IPAddress of a Service whose creation was cut
 * off, by an agent that was killed: the API server takes it for leaked 60 s after it was made.
 */
export async function nothingLeft(
  cluster: string,
  api: KubeApi,
  before: ReadonlySet<string>,
  isUsers: (line: string) => boolean = () => false,
): Promise<void> {
  const look = async (): Promise<string[]> => (await leftovers(api, before)).filter((line) => !isUsers(line));
  const ours = (await look()).filter((line) => line.endsWith(']'));
  if (ours.length > 0) throw new Error(`left in ${cluster}:\n${ours.join('\n')}`);
  await eventually(
    `nothing left in ${cluster}`,
    async () => {
      const left = await look();
      if (left.length > 0) throw new Error(`\n${left.join('\n')}`);
      return true;
    },
    { withinMs: 120_000, everyMs: 500 },
  );
}
