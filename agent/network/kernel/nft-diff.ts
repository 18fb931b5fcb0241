/** What to tell nft so that our tables become what the state says. Pure. */
import type { NftTable } from './kernel-state.ts';

/** One of our tables as the kernel has it. */
export interface FoundTable {
  /** Everything but counters, handles and elements of maps, as text that is equal when they are. */
  readonly structure: string;
  /** Of that, the rules that translate addresses. */
  readonly nat: string;
  readonly maps: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export const tableKey = ({ family, name }: Pick<NftTable, 'family' | 'name'>): string => `${family} ${name}`;

/** Replaces the table in one transaction, from any earlier content. */
export const replaceTable = (table: NftTable): string =>
  `${removeTable(table)}table ${tableKey(table)} {\n${Object.entries(table.maps)
    .map(([name, elements]) => mapText(name, elements))
    .join('')}${table.body}}\n`;

/** Succeeds, too, when there is none. */
export const removeTable = (table: Pick<NftTable, 'family' | 'name'>): string =>
  `add table ${tableKey(table)}\ndelete table ${tableKey(table)}\n`;

/** The elements that differ; empty when none do. */
export function elementChanges(table: NftTable, found: FoundTable): string {
  return Object.entries(table.maps)
    .flatMap(([name, wanted]) => {
      const has = found.maps[name] ?? {};
      const gone = Object.keys(has).filter((key) => wanted[key] !== has[key]);
      const added = Object.entries(wanted).filter(([key, value]) => has[key] !== value);
      return [
        elementsText('delete', table, name, gone),
        elementsText(
          'add',
          table,
          name,
          added.map(([key, value]) => `${key} : ${value}`),
        ),
      ];
    })
    .join('');
}

const elementsText = (verb: string, table: NftTable, map: string, elements: readonly string[]): string =>
  elements.length === 0 ? '' : `${verb} element ${tableKey(table)} ${map} { ${elements.join(', ')} }\n`;

function mapText(name: string, elements: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(elements).map(([key, value]) => `${key} : ${value}`);
  const content = pairs.length === 0 ? '' : `  elements = { ${pairs.join(', ')} }\n`;
  return `map ${name} {\n  type ipv4_addr : ipv4_addr\n${content}}\n`;
}

/** From `nft -j -s list table`. */
export function parseTable(json: string): FoundTable {
  const { nftables } = JSON.parse(json) as { nftables: readonly Readonly<Record<string, unknown>>[] };
  const maps: Record<string, Record<string, string>> = {};
  const structure: unknown[] = [];
  for (const item of nftables) {
    if ('metainfo' in item) continue;
    const map = item.map as { name: string; elem?: readonly (readonly [string, string])[] } | undefined;
    if (map) {
      maps[map.name] = Object.fromEntries(map.elem ?? []);
      structure.push({ map: map.name });
    } else structure.push(item);
  }
  const natChains = new Set(
    nftables.flatMap(({ chain }) => {
      const { name, type } = (chain ?? {}) as { name?: string; type?: string };
      return type === 'nat' ? [name] : [];
    }),
  );
  const translates = (item: unknown): boolean =>
    natChains.has((item as { rule?: { chain?: string } }).rule?.chain ?? undefined);
  return { structure: textOf(structure), nat: textOf(structure.filter(translates)), maps };
}

/** Of `nft -j -s list ruleset`, what `list table` says of each, by table. */
export function tablesOf(json: string): ReadonlyMap<string, string> {
  const { nftables } = JSON.parse(json) as {
    nftables: readonly Readonly<Record<string, { family: NftTable['family']; name: string; table?: string }>>[];
  };
  const items = new Map<string, unknown[]>();
  for (const item of nftables) {
    const [[kind = '', of] = []] = Object.entries(item);
    if (of === undefined || kind === 'metainfo') continue;
    const key = tableKey({ family: of.family, name: kind === 'table' ? of.name : (of.table ?? '') });
    items.set(key, [...(items.get(key) ?? []), item]);
  }
  return new Map([...items].map(([key, own]) => [key, JSON.stringify({ nftables: own })]));
}

const textOf = (items: readonly unknown[]): string =>
  JSON.stringify(items, (key, value: unknown) =>
    key === 'handle' || key === 'index' || key === 'packets' || key === 'bytes' ? undefined : value,
  );

/** Tables with a chain of this name, from `nft -j list chains`. */
export function tablesWithChain(json: string, chain: string): { family: NftTable['family']; name: string }[] {
  const { nftables } = JSON.parse(json) as {
    nftables: readonly { chain?: { family: NftTable['family']; table: string; name: string } }[];
  };
  return nftables.flatMap(({ chain: found }) =>
    found?.name === chain ? [{ family: found.family, name: found.table }] : [],
  );
}
