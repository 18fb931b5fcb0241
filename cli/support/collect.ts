/** What a support bundle holds of one cluster, read within bounds of size and time. Secrets and ConfigMaps of users are never asked for. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { ownPodsOf, tenantNamespacesOf } from '#cli/doctor/own-pods.ts';
import { redactJson, redactObject, redactText } from '#cli/support/redact.ts';
import { coreEvents, daemonSets, deployments, namespaces, nodes, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';

export interface BundleFile {
  readonly name: string;
  readonly text: string;
}

export interface Collected {
  readonly files: readonly BundleFile[];
  /** What could not be read, or was cut. */
  readonly notes: readonly string[];
}

/** Of one kind. */
const mostObjects = 500;
/** Of one container: its last lines. */
const mostLogBytes = 1_000_000;
const mostLogLines = 5_000;
const mostPods = 40;

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Every file is named under `folder`. */
export async function collect(kube: KubeClient, folder: string): Promise<Collected> {
  const notes: string[] = [];
  const tried = async <T>(what: string, otherwise: T, ask: () => Promise<T>): Promise<T> => {
    try {
      return await ask();
    } catch (error) {
      notes.push(`${folder}: ${what}: ${redactText(messageOf(error))}`);
      return otherwise;
    }
  };
  const list = <T extends KubeObject>(type: ResourceType<T>, selector?: string, namespace?: string): Promise<T[]> =>
    tried(type.plural, [], () => kube.list(type, selector, namespace));
  const bounded = <T>(what: string, all: readonly T[], most = mostObjects): readonly T[] => {
    if (all.length > most) notes.push(`${folder}: ${what}: the first ${most} of ${all.length}`);
    return all.slice(0, most);
  };
  const allNamespaces = await list(namespaces);
  const ours = allNamespaces.filter(
    ({ metadata }) => metadata.name === systemNamespace || metadata.labels?.[label.remoteClusterId] !== undefined,
  );
  const names = ours.map(({ metadata }) => metadata.name);
  const kinds = allKinds.map((type): ResourceType => type);
  const [custom, ownPods, events, ...installed] = await Promise.all([
    Promise.all(kinds.map(async (type) => ({ type, objects: await list(type) }))),
    ownPodsOf(list, tenantNamespacesOf(allNamespaces)),
    Promise.all(names.slice(0, mostPods).map((name) => list(coreEvents, undefined, name))),
    ...[deployments, daemonSets, services].map((type: ResourceType) => list(type, undefined, systemNamespace)),
    list(nodes),
  ]);
  const objectFile = (name: string, objects: readonly KubeObject[]): BundleFile => ({
    name: `${folder}/objects/${name}.json`,
    text: json(bounded(name, objects).map(redactObject)),
  });
  const files: BundleFile[] = [
    ...custom
      .filter(({ objects }) => objects.length > 0)
      .map(({ type, objects }) => objectFile(`${type.plural}.${type.group}`, objects)),
    objectFile('installation', installed.slice(0, -1).flat()),
    objectFile('nodes', installed.at(-1) ?? []),
    objectFile('namespaces', ours),
    objectFile('pods', ownPods),
    { name: `${folder}/events.json`, text: json(bounded('events', events.flat(), 2_000).map(redactObject)) },
  ];
  const logs = bounded('pods with logs', ownPods, mostPods).map(async (pod) => logOf(kube, pod, folder, tried));
  return { files: [...files, ...(await Promise.all(logs)).flat()], notes };
}

async function logOf(
  kube: KubeClient,
  { metadata, spec, status }: Pod,
  folder: string,
  tried: <T>(what: string, otherwise: T, ask: () => Promise<T>) => Promise<T>,
): Promise<BundleFile[]> {
  const { namespace = '', name } = metadata;
  const wanted = (spec?.containers ?? []).flatMap((container) => {
    const state = status?.containerStatuses?.find((one) => one.name === container.name);
    if (state === undefined || state.containerID === undefined) return [];
    return [
      { container: container.name, previous: false },
      ...(state.restartCount > 0 ? [{ container: container.name, previous: true }] : []),
    ];
  });
  const files = wanted.map(async ({ container, previous }): Promise<BundleFile[]> => {
    const query = `container=${container}&previous=${previous}&tailLines=${mostLogLines}&limitBytes=${mostLogBytes}&timestamps=true`;
    const what = `log of ${namespace}/${name}/${container}${previous ? ' before its restart' : ''}`;
    const text = await tried(what, '', () => kube.path(`/api/v1/namespaces/${namespace}/pods/${name}/log?${query}`));
    if (text === '') return [];
    return [
      {
        name: `${folder}/logs/${namespace}_${name}_${container}${previous ? '.previous' : ''}.log`,
        text: redactText(text),
      },
    ];
  });
  return (await Promise.all(files)).flat();
}

/** What commands found out themselves. */
export const found = (name: string, value: unknown): BundleFile => ({ name, text: json(redactJson(value)) });
