/** A gateway template's body made into an object: every text in it is a template (docs/design/networking.md#how-are-gateways-rendered). Pure. */
import { firstField, isTemplate, isZero, renderText } from './execute.ts';

/** What texts may refer to. */
export interface TemplateData {
  /** Of the GatewayServer or GatewayClient. */
  readonly Spec: object;
  readonly Name: string;
  readonly Namespace: string;
  readonly GatewayUID: string;
  /** Of the peer. */
  readonly ClusterID: string;
  /** Secret with the keys. */
  readonly SecretName: string;
}

export type Tree = string | number | boolean | null | undefined | readonly Tree[] | { readonly [key: string]: Tree };

/** Fields whose values Kubernetes wants as text, also when they look like numbers. Liqo knows the first two. */
const texts = new Set(['labels', 'annotations', 'matchLabels', 'nodeSelector', 'env', 'args', 'command']);
const isMap = (tree: Tree): tree is { readonly [key: string]: Tree } =>
  typeof tree === 'object' && tree !== null && !Array.isArray(tree);

const integer = /^-?(0|[1-9]\d{0,14})$/;

/**
 * Rules of Liqo: a key `?name` is left out when the first field that its value names is zero; text that comes out as an integer becomes one,
 * but not beside or below labels and annotations (beyond Liqo also not in env, args, command and selectors).
 * Fails with `invalid_input` that names the place and the template.
 */
export function renderTree(tree: Tree, data: TemplateData): Tree {
  return render(tree, data, false);
}

function render(tree: Tree, data: TemplateData, asText: boolean): Tree {
  if (typeof tree === 'string') {
    const text = renderText(tree, data);
    return !asText && integer.test(text) ? Number(text) : text;
  }
  if (Array.isArray(tree)) return tree.map((item: Tree) => render(item, data, asText));
  if (!isMap(tree)) return asText && (typeof tree === 'number' || typeof tree === 'boolean') ? String(tree) : tree;
  const forced = asText || 'labels' in tree || 'annotations' in tree;
  const entries: [string, Tree][] = [];
  for (const [key, value] of Object.entries(tree)) {
    const name = key.startsWith('?') ? key.slice(1) : key;
    if (key.startsWith('?') && isAbsent(value, data)) continue;
    entries.push([name, render(value, data, forced || texts.has(name))]);
  }
  return Object.fromEntries(entries);
}

/** By the first field named in the value, wherever in it. A value that names none is always there. */
function isAbsent(value: Tree, data: TemplateData): boolean {
  for (const source of sourcesOf(value)) {
    const first = firstField(source, data);
    if (first !== undefined) return isZero(first.value);
  }
  return false;
}

function sourcesOf(tree: Tree): readonly string[] {
  if (typeof tree === 'string') return isTemplate(tree) ? [tree] : [];
  if (Array.isArray(tree)) return tree.flatMap(sourcesOf);
  return isMap(tree) ? Object.values(tree).flatMap(sourcesOf) : [];
}
