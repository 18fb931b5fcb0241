/** Our nft tables and those of users in one network namespace: whole ones are replaced, elements of maps added and removed. */

import { AppError } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Commands } from './commands.ts';
import { type KernelState, type NftTable, nftTable, ownedChain, type Refusal } from './kernel-state.ts';
import {
  elementChanges,
  type FoundTable,
  parseTable,
  removeTable,
  replaceTable,
  tableKey,
  tablesOf,
  tablesWithChain,
} from './nft-diff.ts';
import { staleFlows, untranslated } from './stale-flows.ts';

const ownFamilies = ['ip', 'ip6', 'netdev'] as const;
const ownTables = ownFamilies.map((family) => ({ family, name: nftTable }));

/** A table as the kernel had it at the last look: parsed, and as it said so. */
interface Seen {
  readonly table: FoundTable;
  readonly json: string;
}

export interface NftOptions {
  /** Other programs rarely have tables here, so one list of all tables is cheaper than one process for each of ours. */
  readonly alone?: boolean;
}

export class NftTables {
  readonly #commands: Commands;
  readonly #alone: boolean;
  /** By table: the text we loaded and what the kernel made of it. */
  readonly #loaded = new Map<string, { readonly body: string; readonly structure: string }>();
  /** Tables of users' that are ours to remove; known after the first look. */
  #userTables: Map<string, Pick<NftTable, 'family' | 'name'>> | undefined;

  /** Whether those of our tables that are not wanted have been looked for. */
  #hasLooked = false;

  /** By table, undefined for one that is absent. Valid until something is written, or another program may have written. */
  readonly #seen = new Map<string, Promise<Seen | undefined>>();
  #all: Promise<ReadonlyMap<string, Seen>> | undefined;
  /** By request, the last answer and its parsed form: mostly the next answer is the same. */
  readonly #understood = new Map<string, { readonly text: string; readonly as: unknown }>();

  constructor(commands: Commands, { alone = false }: NftOptions = {}) {
    this.#commands = commands;
    this.#alone = alone;
  }

  /** Drops what was read: the next request reads the kernel, once. */
  lookAgain(): void {
    this.#seen.clear();
    this.#all = undefined;
  }

  /** What the kernel has of everything that was loaded. */
  async listings(): Promise<readonly string[]> {
    const looks = [...this.#loaded.keys()].sort().map(async (key) => {
      const [family = '', name = ''] = key.split(' ');
      return (await this.#look(family, name))?.json ?? '';
    });
    return Promise.all(looks);
  }

  /** Answers what was removed. */
  async sweep(): Promise<readonly string[]> {
    this.lookAgain();
    const found = await Promise.all(ownTables.map(async (table) => ((await this.#table(table)) ? [table] : [])));
    const tables = [...found.flat(), ...(await this.#findUserTables()).values()];
    for (const table of tables) await this.#nft(removeTable(table));
    this.#loaded.clear();
    this.#userTables = undefined;
    this.#hasLooked = false;
    return tables.map(tableKey);
  }

  /** Each by itself; one that the kernel does not take is not there at all: `without` says which, and why. */
  async applyOptional(tables: readonly NftTable[]): Promise<{ written: string[]; without: string[] }> {
    const written: string[] = [];
    const without: string[] = [];
    for (const table of tables.filter(({ optional }) => optional === true)) {
      const { content } = await this.#changesOf(table);
      if (content === '') continue;
      try {
        await this.#nft(content);
        await this.#remember(table);
        written.push(`nft replace ${tableKey(table)}`);
      } catch (error) {
        this.#loaded.delete(tableKey(table));
        if (await this.#table(table)) await this.#nft(removeTable(table));
        without.push(`table ${tableKey(table)}: ${messageOf(error)}`);
      }
    }
    return { written, without };
  }

  /** All of them in one transaction. Answers what was written. */
  async applyOwn(state: KernelState): Promise<string[]> {
    const tables = state.tables.filter(({ configuration, optional }) => configuration === undefined && !optional);
    const changes = await Promise.all(tables.map((table) => this.#changesOf(table)));
    // all or none, so that they are always listed in the same order; optional ones come after them again
    const replaces = changes.some((change) => change.replaces);
    const replaced = replaces ? tables : [];
    const texts = replaces ? tables.map(replaceTable) : changes.map(({ content }) => content);
    const undecided = state.undecided ?? [];
    const staying = [...(replaces ? tables : state.tables), ...undecided];
    const gone = ownTables.filter((own) => !staying.some((table) => tableKey(table) === tableKey(own)));
    for (const table of gone) {
      // Each list is a process: one for what an earlier run left, and again next to a change.
      const mayBeThere = this.#loaded.delete(tableKey(table)) || !this.#hasLooked || texts.some((text) => text !== '');
      if (mayBeThere && (await this.#table(table))) texts.push(removeTable(table));
    }
    if (undecided.length === 0) this.#hasLooked = true;
    const transaction = texts.join('');
    if (transaction === '') return [];
    const before = await this.#translating(state, tables);
    await this.#nft(transaction);
    for (const table of replaced) await this.#remember(table);
    const entrances = replaced.length === 0 ? [] : (state.entrances ?? []);
    for (const port of entrances) await this.#commands.run('conntrack', untranslated(port));
    await this.#forgetStaleFlows(state, before, await this.#translating(state, tables));
    return [`nft ${replaced.length > 0 ? `replace ${replaced.map(tableKey).join(', ')}` : transaction.trim()}`];
  }

  #translating({ translation }: KernelState, tables: readonly NftTable[]): Promise<(FoundTable | undefined)[]> {
    return Promise.all(translation === undefined ? [] : tables.map((table) => this.#table(table)));
  }

  async #forgetStaleFlows(
    { translation }: KernelState,
    before: readonly (FoundTable | undefined)[],
    after: readonly (FoundTable | undefined)[],
  ): Promise<void> {
    if (translation === undefined) return;
    const calls = before.flatMap((was, i) => {
      const is = after[i];
      return was === undefined || is === undefined ? [] : staleFlows(was, is, translation);
    });
    // Ends with 1 when there is no such flow.
    for (const call of calls) await this.#commands.run('conntrack', call);
  }

  async applyUsers(tables: readonly NftTable[]): Promise<{ written: string[]; failed: Refusal[] }> {
    const owned = await this.#findUserTables();
    const wanted = tables.filter(({ configuration }) => configuration !== undefined);
    const written: string[] = [];
    const failed: Refusal[] = [];
    for (const table of wanted) {
      const { configuration = '' } = table;
      const key = tableKey(table);
      try {
        const { content } = await this.#changesOf(table);
        if (content === '') continue;
        if (!owned.has(key) && (await this.#table(table)))
          throw new AppError('command_failed', `table ${key} exists and is not of Isthmus; choose another name`);
        await this.#nft(content);
        await this.#remember(table);
        owned.set(key, table);
        written.push(`nft replace ${key}`);
      } catch (error) {
        failed.push({ configuration, message: messageOf(error) });
      }
    }
    const keys = new Set(wanted.map(tableKey));
    for (const [key, table] of owned) {
      if (keys.has(key)) continue;
      await this.#nft(removeTable(table));
      owned.delete(key);
      this.#loaded.delete(key);
      written.push(`nft delete ${key}`);
    }
    return { written, failed };
  }

  async #changesOf(table: NftTable): Promise<{ content: string; replaces: boolean }> {
    const known = this.#loaded.get(tableKey(table));
    const found = known?.body === table.body ? await this.#table(table) : undefined;
    if (!found || found.structure !== known?.structure) return { content: replaceTable(table), replaces: true };
    return { content: elementChanges(table, found), replaces: false };
  }

  async #remember(table: NftTable): Promise<void> {
    const found = await this.#table(table);
    if (found) this.#loaded.set(tableKey(table), { body: table.body, structure: found.structure });
  }

  async #table({ family, name }: Pick<NftTable, 'family' | 'name'>): Promise<FoundTable | undefined> {
    return (await this.#look(family, name))?.table;
  }

  async #look(family: string, name: string): Promise<Seen | undefined> {
    const key = `${family} ${name}`;
    if (this.#alone) {
      this.#all ??= this.#lookAtAll();
      return (await this.#all).get(key);
    }
    const seen = this.#seen.get(key) ?? this.#lookAt(family, name);
    this.#seen.set(key, seen);
    return seen;
  }

  async #lookAtAll(): Promise<ReadonlyMap<string, Seen>> {
    const text = await this.#commands.must('nft', ['-j', '-s', 'list', 'ruleset']);
    return this.#understand('', text, () => {
      const all = tablesOf(text);
      return new Map([...all].map(([key, json]) => [key, { json, table: parseTable(json) }]));
    });
  }

  async #lookAt(family: string, name: string): Promise<Seen | undefined> {
    const { code, stdout } = await this.#commands.run('nft', ['-j', '-s', 'list', 'table', family, name]);
    if (code === 0)
      return this.#understand(`${family} ${name}`, stdout, () => ({ json: stdout, table: parseTable(stdout) }));
    this.#understood.delete(`${family} ${name}`);
    return undefined;
  }

  #understand<T>(asked: string, text: string, parse: () => T): T {
    const last = this.#understood.get(asked);
    if (last?.text === text) return last.as as T;
    const as = parse();
    this.#understood.set(asked, { text, as });
    return as;
  }

  async #findUserTables(): Promise<Map<string, Pick<NftTable, 'family' | 'name'>>> {
    if (!this.#userTables) {
      const chains = await this.#commands.must('nft', ['-j', 'list', 'chains']);
      this.#userTables = new Map(tablesWithChain(chains, ownedChain).map((table) => [tableKey(table), table]));
    }
    return this.#userTables;
  }

  async #nft(transaction: string): Promise<void> {
    await this.#commands.must('nft', ['-f', await this.#commands.file('transaction', transaction)]);
    this.lookAgain();
  }
}
