/** What an API server holds, and what has to be done until it holds again what it held before. Pure. */
import { canonical } from '#shared/domain/canonical-json.ts';

export interface ApiObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly finalizers?: readonly string[];
    readonly deletionTimestamp?: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

export interface ServedType {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

export interface Held {
  readonly type: ServedType;
  readonly object: ApiObject;
}

/** By `keyOf`. */
export type State = ReadonlyMap<string, Held>;

export const keyOf = ({ group, plural }: ServedType, { metadata }: ApiObject): string =>
  `${plural}.${group} ${metadata.namespace ?? ''}/${metadata.name}`;

/** Kept by Kubernetes' own components while they run; their content is not what a test left. */
const isRenewed = ({ group, plural }: ServedType): boolean => group === 'coordination.k8s.io' && plural === 'leases';

/** kube-controller-manager makes a ServiceAccount for each of its controllers when that one first starts; the API server renews a lease of its own. */
const isOfComponents = ({ type, object }: Held): boolean =>
  object.metadata.namespace === 'kube-system' &&
  ((type.group === '' && type.plural === 'serviceaccounts') || isRenewed(type));

const volatile = new Set(['uid', 'resourceVersion', 'creationTimestamp', 'managedFields', 'generation', 'selfLink']);

/** What two objects of the same name must have in common to be equal: everything but status and what the API server numbers. */
export function contentOf({ type, object }: Held): string {
  if (isRenewed(type)) return '';
  const { status: _, metadata, ...members } = object;
  // kube-controller-manager writes the rules of such a role, out of the roles that it selects.
  const rest = 'aggregationRule' in members ? { ...members, rules: undefined } : members;
  const kept = Object.fromEntries(Object.entries(metadata).filter(([field]) => !volatile.has(field)));
  return canonical({ ...rest, metadata: kept });
}

export interface Difference {
  /** Objects that were not there before. */
  readonly added: readonly Held[];
  /** As they were before; they are there with another content. */
  readonly changed: readonly Held[];
  /** As they were before; they are gone. */
  readonly missing: readonly Held[];
}

export function differenceOf(before: State, now: State): Difference {
  const added = [...now].filter(([key, held]) => !before.has(key) && !isOfComponents(held)).map(([, held]) => held);
  const kept = [...before].filter(([, held]) => !isOfComponents(held));
  const missing = kept.filter(([key]) => !now.has(key)).map(([, held]) => held);
  const changed = kept.flatMap(([key, held]) => {
    const found = now.get(key);
    return found !== undefined && contentOf(found) !== contentOf(held) ? [held] : [];
  });
  return { added, changed, missing };
}

export const isEqual = ({ added, changed, missing }: Difference): boolean =>
  added.length + changed.length + missing.length === 0;

const nameOf = ({ group, plural }: ServedType): string => `${plural}.${group}`;

/** Each once. */
export const typesOf = ({ added, changed, missing }: Difference): readonly ServedType[] => [
  ...new Map([...added, ...changed, ...missing].map(({ type }) => [nameOf(type), type])).values(),
];

/** All of it unless told. */
export function ofTypes(state: State, types: readonly ServedType[] | undefined): State {
  if (types === undefined) return state;
  const names = new Set(types.map(nameOf));
  return new Map([...state].filter(([, { type }]) => names.has(nameOf(type))));
}

/** At most ten names, for the log. */
export function wordsOf({ added, changed, missing }: Difference): string {
  const all = [
    ...added.map((held) => `${keyOf(held.type, held.object)} was added`),
    ...changed.map((held) => `${keyOf(held.type, held.object)} was changed`),
    ...missing.map((held) => `${keyOf(held.type, held.object)} is missing`),
  ];
  return all
    .slice(0, 10)
    .join(', ')
    .concat(all.length > 10 ? ` and ${all.length - 10} more` : '');
}

/** Their admission calls can refuse every other deletion: they go first, and alone. */
const isGate = (held: Held): boolean =>
  held.type.group === 'admissionregistration.k8s.io' ||
  (held.type.group === 'apiregistration.k8s.io' && !isAutomatic(held));

/** The API server makes and removes the APIService of a kind's group together with the kind. */
const isAutomatic = ({ object }: Held): boolean =>
  Object.hasOwn((object.metadata.labels as object | undefined) ?? {}, 'kube-aggregator.kubernetes.io/automanaged');

export type Step =
  /** Collections of one type in one namespace that hold nothing but added objects. */
  | { readonly do: 'delete-collection'; readonly type: ServedType; readonly namespace: string | undefined }
  | { readonly do: 'delete'; readonly held: Held }
  | { readonly do: 'strip-finalizers'; readonly held: Held }
  | { readonly do: 'finalize-namespace'; readonly held: Held }
  | { readonly do: 'restore'; readonly held: Held };

const isNamespace = ({ group, plural }: ServedType): boolean => group === '' && plural === 'namespaces';
/** The API server itself removes the objects of a kind before the kind. */
const crdFinalizer = 'customresourcecleanup.apiextensions.k8s.io';

/** What to do next. Look again afterwards: some steps only become possible by others. What is missing comes back by its component, or not at all. */
export function stepsOf(before: State, { added, changed }: Difference): readonly Step[] {
  const gates = added.filter(isGate);
  if (gates.length > 0) return gates.map((held) => ({ do: 'delete', held }));
  const restored = changed.map((held) => ({ do: 'restore', held }) as const);
  return [...deletions(before, added), ...restored];
}

function deletions(before: State, added: readonly Held[]): Step[] {
  const shared = new Set([...before.values()].map(collectionOf));
  const collections = new Map<string, Step>();
  const steps: Step[] = [];
  for (const held of added) {
    const { type, object } = held;
    const { deletionTimestamp, namespace } = object.metadata;
    if (isAutomatic(held)) continue;
    if (deletionTimestamp !== undefined) steps.push(...endingOf(held, added));
    else if (!type.verbs.includes('deletecollection') || shared.has(collectionOf(held)))
      steps.push({ do: 'delete', held });
    else collections.set(collectionOf(held), { do: 'delete-collection', type, namespace });
  }
  return [...collections.values(), ...steps];
}

const collectionOf = ({ type, object }: Held): string =>
  `${type.plural}.${type.group} ${object.metadata.namespace ?? ''}`;

/** Of an object whose deletion waits for something. */
function endingOf(held: Held, added: readonly Held[]): Step[] {
  const { name, finalizers = [] } = held.object.metadata;
  if (isNamespace(held.type)) {
    const isEmpty = !added.some(({ object }) => object.metadata.namespace === name);
    return isEmpty ? [{ do: 'finalize-namespace', held }] : [];
  }
  return finalizers.some((one) => one !== crdFinalizer) ? [{ do: 'strip-finalizers', held }] : [{ do: 'delete', held }];
}
