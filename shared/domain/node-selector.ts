/** Kubernetes node selectors as values: does a node match, is a selector well formed, and the conjunction of two. */
import type { NodeSelector } from './kube-object.ts';

export type NodeSelectorTerm = NodeSelector['nodeSelectorTerms'][number];
type NodeSelectorRequirement = NonNullable<NodeSelectorTerm['matchExpressions']>[number];

/** What the scheduler looks at: the labels, and the name as the field `metadata.name`. */
export interface NodeFacts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const integer = /^[+-]?\d+$/;

function meets(value: string | undefined, { operator, values = [] }: NodeSelectorRequirement): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt': {
      const bound = values[0];
      if (value === undefined || bound === undefined || !integer.test(value) || !integer.test(bound)) return false;
      return operator === 'Gt' ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound);
    }
    default:
      return false;
  }
}

const isEmptyTerm = (term: NodeSelectorTerm): boolean =>
  (term.matchExpressions ?? []).length === 0 && (term.matchFields ?? []).length === 0;

/** An empty term matches nothing, as in the scheduler. */
function matchesTerm(node: NodeFacts, term: NodeSelectorTerm): boolean {
  if (isEmptyTerm(term)) return false;
  return (
    (term.matchExpressions ?? []).every((r) => meets(node.labels[r.key], r)) &&
    (term.matchFields ?? []).every((r) => r.key === 'metadata.name' && meets(node.name, r))
  );
}

/** As the API server takes it in a pod: `In` without values, which it refuses there, becomes the empty term, which matches no node either. */
export const inPod = (terms: readonly NodeSelectorTerm[]): NodeSelectorTerm[] =>
  terms.map((term) =>
    term.matchExpressions?.some(({ operator, values = [] }) => operator === 'In' && values.length === 0) ? {} : term,
  );

/** Terms are alternatives. No terms at all match nothing, as in the scheduler. */
export const matchesTerms = (node: NodeFacts, terms: readonly NodeSelectorTerm[]): boolean =>
  terms.some((term) => matchesTerm(node, term));

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly NodeSelectorRequirement[];
}

/** A selector of labels as the API machinery has it: an empty one selects everything, none at all selects nothing. */
export function selectsLabels(selector: LabelSelector | undefined, labels: NodeFacts['labels'] = {}): boolean {
  if (selector === undefined) return false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((requirement) => meets(labels[requirement.key], requirement))
  );
}

/** `clusterSelector` of a NamespaceOffloading: absent or without terms it selects every cluster, unlike a scheduler's selector. */
export const selectsCluster = (node: NodeFacts, selector: NodeSelector | undefined): boolean =>
  !selector?.nodeSelectorTerms?.length || matchesTerms(node, selector.nodeSelectorTerms);

/**
 * Terms that a node satisfies if and only if it satisfies both inputs: each of `mine` joined with each of `theirs`. `matchFields` are kept:
 * DaemonSets pin their pods with them.
 */
export function bothTerms(mine: readonly NodeSelectorTerm[], theirs: readonly NodeSelectorTerm[]): NodeSelectorTerm[] {
  const left = mine.filter((term) => !isEmptyTerm(term));
  const right = theirs.filter((term) => !isEmptyTerm(term));
  // An empty term is the API's way to write "no node"; dropping the last one would turn it into "any node" or an invalid object.
  if (left.length === 0 || right.length === 0) return [{}];
  return left.flatMap((a) => right.map((b) => joined(a, b)));
}

function joined(a: NodeSelectorTerm, b: NodeSelectorTerm): NodeSelectorTerm {
  const matchExpressions = [...(a.matchExpressions ?? []), ...(b.matchExpressions ?? [])];
  const matchFields = [...(a.matchFields ?? []), ...(b.matchFields ?? [])];
  return {
    ...(matchExpressions.length > 0 && { matchExpressions }),
    ...(matchFields.length > 0 && { matchFields }),
  };
}

const labelName = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$/;
const labelPrefix = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

function isLabelKey(key: string): boolean {
  const slash = key.indexOf('/');
  return slash < 0
    ? labelName.test(key)
    : labelPrefix.test(key.slice(0, slash)) && labelName.test(key.slice(slash + 1));
}

function requirementProblem({ key, operator, values = [] }: NodeSelectorRequirement): string | undefined {
  if (!isLabelKey(key)) return `key ${JSON.stringify(key)} is not a label key`;
  switch (operator) {
    case 'In':
    case 'NotIn': {
      // `liqoctl move volume` selects no cluster by that.
      if (operator === 'NotIn' && values.length === 0)
        return `operator ${operator} on key ${key} needs at least one value`;
      const bad = values.find((value) => !labelValue.test(value));
      return bad === undefined ? undefined : `value ${JSON.stringify(bad)} of key ${key} is not a label value`;
    }
    case 'Exists':
    case 'DoesNotExist':
      return values.length === 0 ? undefined : `operator ${operator} on key ${key} takes no values`;
    case 'Gt':
    case 'Lt':
      return values.length === 1 && integer.test(values[0] ?? '')
        ? undefined
        : `operator ${operator} on key ${key} takes exactly one integer`;
    default:
      return `operator ${JSON.stringify(operator)} on key ${key} is unknown: In, NotIn, Exists, DoesNotExist, Gt or Lt`;
  }
}

/** Undefined when well formed; otherwise the first problem, with its path below the selector. `In` without values is, and matches no node. */
export function nodeSelectorProblem(selector: NodeSelector | undefined): string | undefined {
  for (const [t, term] of (selector?.nodeSelectorTerms ?? []).entries()) {
    for (const [e, requirement] of (term.matchExpressions ?? []).entries()) {
      const problem = requirementProblem(requirement);
      if (problem !== undefined) return `nodeSelectorTerms[${t}].matchExpressions[${e}]: ${problem}`;
    }
    for (const [f, { key, operator, values = [] }] of (term.matchFields ?? []).entries()) {
      if (key === 'metadata.name' && (operator === 'In' || operator === 'NotIn') && values.length === 1) continue;
      return `nodeSelectorTerms[${t}].matchFields[${f}]: only metadata.name with In or NotIn and one value is supported`;
    }
  }
  return undefined;
}
