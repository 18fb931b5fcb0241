/** The import graph, read from the text of the files: each import with whether it exists at run time or binds types only. */
import path from 'node:path';

export interface Import {
  readonly from: string;
  /** A path from the root, or a bare package name. */
  readonly to: string;
  readonly typeOnly: boolean;
}

const statement =
  /(?:^|\n)\s*(import|export)\s+(type\s+(?!from\b))?((?:\*[^;'"]*?|\{[^}]*\}\s*|[\w$]+(?:\s*,\s*(?:\{[^}]*\}|\*\s+as\s+[\w$]+))?\s+))?(?:from\s*)?['"]([^'"\n]+)['"]/g;
const call = /(?<!typeof\s)\bimport\(\s*['"]([^'"]+)['"]/g;

/** Comments and template literals can hold text that looks like an import: only code that begins a line counts. */
export function importsOf(file: string, text: string): Import[] {
  const found: Import[] = [];
  const add = (specifier: string, typeOnly: boolean) =>
    found.push({ from: file, to: resolveSpecifier(file, specifier), typeOnly });
  for (const [, word, type, clause, specifier] of text.matchAll(statement)) {
    if (specifier === undefined || (word === 'export' && clause === undefined)) continue;
    const named = /^\{([^}]*)\}\s*$/.exec((clause ?? '').trim());
    const names = (named?.[1] ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean);
    add(specifier, type !== undefined || (names.length > 0 && names.every((name) => name.startsWith('type '))));
  }
  for (const [, specifier] of text.matchAll(call)) if (specifier !== undefined) add(specifier, false);
  return found;
}

function resolveSpecifier(file: string, specifier: string): string {
  if (specifier.startsWith('#')) return specifier.slice(1);
  if (specifier.startsWith('.')) return path.posix.normalize(path.posix.join(path.posix.dirname(file), specifier));
  return specifier;
}

/** The groups of nodes that reach each other, largest first (Tarjan's strongly connected components of more than one node). */
export function cycles(edges: Iterable<readonly [string, string]>): string[][] {
  const next = new Map<string, Set<string>>();
  for (const [from, to] of edges) {
    if (from === to) continue;
    next.set(from, (next.get(from) ?? new Set()).add(to));
  }
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const found: string[][] = [];
  const visit = (node: string): number => {
    const number = order.size;
    let low = number;
    order.set(node, number);
    stack.push(node);
    onStack.add(node);
    for (const target of next.get(node) ?? []) {
      if (!order.has(target)) low = Math.min(low, visit(target));
      else if (onStack.has(target)) low = Math.min(low, order.get(target) ?? 0);
    }
    lowest.set(node, low);
    if (low === number) {
      const group = stack.splice(stack.indexOf(node));
      for (const member of group) onStack.delete(member);
      if (group.length > 1) found.push(group.sort());
    }
    return low;
  };
  for (const node of next.keys()) if (!order.has(node)) visit(node);
  return found.sort((a, b) => b.length - a.length);
}

/** Files that import each other, types included. */
export const fileCycles = (imports: readonly Import[]): string[][] =>
  cycles(imports.map(({ from, to }) => [from, to] as const));

/** Folders whose files import each other's at run time. */
export const folderRings = (imports: readonly Import[]): string[][] =>
  cycles(
    imports
      .filter(({ typeOnly }) => !typeOnly)
      .map(({ from, to }) => [path.posix.dirname(from), path.posix.dirname(to)] as const),
  );
