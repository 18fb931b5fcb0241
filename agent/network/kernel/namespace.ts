/**
 * One network namespace: brings its kernel state to what a plan says, with the fewest writes, and removes everything of ours again. Each pass reads
 * the kernel first and assumes nothing from earlier runs.
 */

import { createHash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { type Commands, commandsIn } from './commands.ts';
import { diff, type IpCommand, tunnelWillExist } from './diff.ts';
import { type KernelState, overlayDevice, ownedProtocol, type Refusal, tunnelDevice } from './kernel-state.ts';
import { type NetlinkMonitor, startNetlinkMonitor } from './netlink-monitor.ts';
import { withNftSession } from './nft-session.ts';
import { NftTables } from './nft-tables.ts';
import { isOursInMonitor, monitorArguments, type Observed, parseObserved, readBatch, readOptions } from './observed.ts';
import { flowsOfOtherWays } from './stale-flows.ts';
import { kernelTunnel, type TunnelControl, userspaceTunnel } from './wireguard.ts';

export interface Applied {
  /** What was written, in words of the tools; empty when the kernel had it all. Holds no secret. */
  readonly wrote: readonly string[];
  /** User configurations that nft or the kernel did not take; those that the plan refused are among them. */
  readonly failed: readonly Refusal[];
  /** Optional tables that the kernel does not take, and why: everything works, slower. */
  readonly without: readonly string[];
  /** `true` while wireguard-go has not made the tunnel device yet: apply again once it has. */
  readonly awaitsTunnel: boolean;
}

export interface Namespace {
  /** Rejects with `command_failed` when something of ours was not taken; the rest is done nevertheless. Calls wait for each other. */
  apply(state: KernelState): Promise<Applied>;
  /** Devices, routes, rules and neighbours that are ours. */
  read(): Promise<Observed>;
  /** Everything owned goes: devices, routes, rules, neighbours, tables. Answers what was removed. */
  sweep(): Promise<readonly string[]>;
  /** Control of the tunnel device in here. */
  tunnel(implementation: 'kernel' | 'userspace'): TunnelControl;
  /** Calls back when the kernel no longer has what the last `apply` left, at most once per apply; the caller applies again. */
  watchDrift(onChange: () => void, options?: { readonly everyMs?: number }): { stop(): void };
  /** After what is under way; nothing is watched any more. The kernel keeps everything. */
  close(): Promise<void>;
}

export interface NamespaceOptions {
  /** Of the process whose namespace it is, in a pod one of the tunnel's container (not the sandbox: its file system is looked into). */
  readonly pid?: number;
  /** In that namespace. */
  readonly commands?: Commands;
}

export function openNamespace({ pid, commands }: NamespaceOptions = {}): Namespace {
  return new HostNamespace(commands ?? commandsIn(pid === undefined ? undefined : `/proc/${pid}/ns/net`), pid);
}

const devices = [overlayDevice, tunnelDevice];
/** Only administrators change sysctls, so they are polled this seldom. */
const sysctlsMs = 30_000;

/** What is programmed by which tool. */
type Part = 'ip' | 'nft';
/** The netlink monitor of each part. None for `nft`: its monitor would keep every table of the namespace in memory. */
type Monitors = Readonly<Partial<Record<Part, NetlinkMonitor>>>;

/** Polling interval for changes that the monitors missed. */
const safetyMs = 30_000;
/** Debounce: a reported change is read after this time, and no more often. */
const heedMs = 1_000;

class HostNamespace implements Namespace {
  readonly #commands: Commands;
  readonly #pid: number | undefined;
  #last: Promise<unknown> = Promise.resolve();
  readonly #tables: NftTables;
  readonly #closing = new AbortController();
  readonly #tunnels = new Map<'kernel' | 'userspace', TunnelControl>();
  #expected: Readonly<Record<Part, string>> | undefined;
  /** When the last look at each began. */
  #lookedAt: Record<Part, number> = { ip: Number.NEGATIVE_INFINITY, nft: Number.NEGATIVE_INFINITY };
  #applies = 0;
  #sysctls: { readonly as: string | undefined; readonly at: number } = { as: undefined, at: 0 };
  #appliedAt = Number.NEGATIVE_INFINITY;

  constructor(commands: Commands, pid: number | undefined) {
    // In a gateway's namespace one command reads the tables, in the node's three: a second long-running nft is not worth its memory there.
    this.#commands = pid === undefined ? withNftSession(commands) : commands;
    this.#pid = pid;
    this.#tables = new NftTables(this.#commands, { alone: pid !== undefined });
  }

  apply(state: KernelState): Promise<Applied> {
    return this.#serialized(() => this.#apply(state));
  }

  read(): Promise<Observed> {
    return this.#serialized(() => this.#read());
  }

  tunnel(implementation: 'kernel' | 'userspace'): TunnelControl {
    const known = this.#tunnels.get(implementation);
    if (known !== undefined) return known;
    const made =
      implementation === 'kernel'
        ? kernelTunnel(this.#commands, tunnelDevice)
        : userspaceTunnel(this.#pid, tunnelDevice);
    this.#tunnels.set(implementation, made);
    return made;
  }

  sweep(): Promise<readonly string[]> {
    return this.#serialized(async () => {
      const empty = { neighbours: [], routes: [], rules: [], tables: [], sysctls: {}, refused: [] };
      const observed = await this.#read();
      const lines = diff(empty, observed);
      // a device that wireguard-go made goes with its process, and here at the latest; last, since its routes go with it
      if (observed.devices.get(tunnelDevice)?.kind === 'tun') lines.push({ line: `link del dev ${tunnelDevice}` });
      await this.#ip(lines);
      const tables = await this.#tables.sweep();
      this.#expected = undefined;
      return [...lines.map(({ line }) => line), ...tables.map((table) => `table ${table}`)];
    });
  }

  watchDrift(onChange: () => void, { everyMs = 2_500 } = {}): { stop(): void } {
    const stopped = new AbortController();
    const { signal } = stopped;
    const monitors = this.#listen();
    const hush = (): void => monitors.ip?.stop();
    signal.addEventListener('abort', hush, { once: true });
    this.#closing.signal.addEventListener('abort', () => stopped.abort(), { once: true, signal });
    let reportedApply = -1;
    const watch = async (): Promise<void> => {
      let waitMs = everyMs;
      while (!signal.aborted) {
        await delay(waitMs, undefined, { signal, ref: false });
        // An apply reads everything too, so it counts as a poll.
        waitMs = this.#appliedAt + everyMs - performance.now();
        if (waitMs > 0) continue;
        waitMs = Math.min(everyMs, heedMs);
        if (this.#expected === undefined || reportedApply === this.#applies) continue;
        const due = this.#due(monitors, everyMs);
        if (due.length === 0 || !(await this.#serialized(() => this.#hasDrifted(due))) || signal.aborted) continue;
        reportedApply = this.#applies;
        onChange();
      }
    };
    void watch().catch(() => undefined); // it ends with the signal; a namespace that is gone is the caller's to notice
    return { stop: () => stopped.abort() };
  }

  close(): Promise<void> {
    this.#closing.abort();
    return this.#serialized(async () => this.#commands.close());
  }

  #listen(): Monitors {
    const [commands, now] = [this.#commands, () => performance.now()];
    return { ip: startNetlinkMonitor({ commands, now, name: 'ip', args: monitorArguments, isOurs: isOursInMonitor }) };
  }

  /** The parts to read now: those that a monitor reported, those without a monitor every `everyMs`, and all of them every `safetyMs`. */
  #due(monitors: Monitors, everyMs: number): readonly Part[] {
    const patience = { changed: Math.min(everyMs, heedMs), unknown: everyMs, quiet: safetyMs };
    return (['ip', 'nft'] as const).filter((part) => {
      const lookedAt = this.#lookedAt[part];
      return performance.now() - lookedAt >= patience[monitors[part]?.since(lookedAt) ?? 'unknown'];
    });
  }

  async #hasDrifted(parts: readonly Part[]): Promise<boolean> {
    for (const part of parts) {
      this.#lookedAt[part] = performance.now();
      this.#tables.lookAgain();
      const found = part === 'ip' ? fingerprintOf(await this.#readText()) : await this.#fingerprintOfTables();
      if (this.#expected?.[part] !== found) return true;
    }
    return false;
  }

  #serialized<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #apply(state: KernelState): Promise<Applied> {
    const wrote: string[] = [];
    const failed: Refusal[] = [...state.refused];
    const problems: string[] = [];
    const attempt = async (work: () => Promise<readonly string[]>): Promise<void> => {
      try {
        wrote.push(...(await work()));
      } catch (error) {
        problems.push(messageOf(error));
      }
    };
    this.#tables.lookAgain();
    const startedAt = performance.now();
    // guards before devices: nothing is ever open in between
    await attempt(() => this.#tables.applyOwn(state));
    const text = await this.#readText();
    const observed = parseObserved(text);
    const commands = diff(state, observed);
    let written: string | undefined;
    await attempt(async () => {
      const { lines, failed: refused, text: after } = await this.#ip(commands);
      failed.push(...refused);
      written = after;
      // Ends with 1 when there is no such flow.
      for (const call of flowsOfOtherWays(state, observed, this.#applies === 0))
        await this.#commands.run('conntrack', call);
      return lines;
    });
    await attempt(() =>
      this.#applySysctls(
        state.sysctls,
        commands.some(({ line }) => line.startsWith('link ')),
      ),
    );
    await attempt(async () => {
      if (!state.tunnel || !tunnelWillExist(state.tunnel, observed)) return [];
      return (await this.tunnel(state.tunnel.implementation).configure(state.tunnel)).map(
        (what) => `wireguard ${what}`,
      );
    });
    await attempt(async () => {
      const { written, failed: refused } = await this.#tables.applyUsers(state.tables);
      failed.push(...refused);
      return written;
    });
    const without: string[] = [];
    await attempt(async () => {
      const optional = await this.#tables.applyOptional(state.tables);
      without.push(...optional.without);
      return optional.written;
    });
    this.#expected = {
      ip: fingerprintOf(commands.length === 0 ? text : (written ?? (await this.#readText()))),
      nft: await this.#fingerprintOfTables(),
    };
    this.#lookedAt = { ip: startedAt, nft: startedAt };
    this.#applies += 1;
    this.#appliedAt = performance.now();
    if (problems.length > 0) throw new AppError('command_failed', problems.join('; '));
    const awaitsTunnel = state.tunnel !== undefined && !tunnelWillExist(state.tunnel, observed);
    return { wrote, failed, without, awaitsTunnel };
  }

  async #read(): Promise<Observed> {
    return parseObserved(await this.#readText());
  }

  async #readText(): Promise<string> {
    return (await this.#ip([])).text;
  }

  /**
   * One process for what is to be written and for reading all of it after that. Each line is tried; those of ours that fail reject together,
   * those of users are returned.
   */
  async #ip(commands: readonly IpCommand[]): Promise<{ lines: string[]; failed: Refusal[]; text: string }> {
    const writes = commands.map(({ line }) => `${line}\n`).join('');
    const batch = await this.#commands.file('batch', `${writes}${readBatch(devices)}`);
    const { code, stdout, stderr } = await this.#commands.run('ip', [...readOptions, batch]);
    const failed: Refusal[] = [];
    const problems: string[] = [];
    let message = '';
    let understood = false;
    for (const line of stderr.split('\n')) {
      const number = /^Command failed .*:(\d+)$/.exec(line)?.[1];
      if (number === undefined) {
        if (line.trim() !== '') message = line.trim();
        continue;
      }
      understood = true;
      const command = commands[Number(number) - 1];
      if (command === undefined) {
        // What is read may not be there.
        if (!/^(Device "[^"]+" does not exist\.|Cannot find device "[^"]+")$/.test(message))
          problems.push(`ip -batch: ${message}`);
        continue;
      }
      const text = `ip ${command.line}: ${message}`;
      if (command.configuration === undefined) problems.push(text);
      else failed.push({ configuration: command.configuration, message: text });
    }
    if (code !== 0 && !understood) problems.push(`ip -batch ended with ${code}: ${stderr.trim()}`);
    if (problems.length > 0) throw new AppError('command_failed', problems.slice(0, 5).join('; '));
    return { lines: commands.map(({ line }) => line), failed, text: stdout };
  }

  /** Each read is a process: parts that were correct a moment ago and do not concern a device that was just made are not read. */
  async #applySysctls(wanted: KernelState['sysctls'], devicesChanged: boolean): Promise<string[]> {
    const keys = Object.keys(wanted);
    const text = JSON.stringify(wanted);
    const { as, at } = this.#sysctls;
    if (keys.length === 0 || (as === text && !devicesChanged && performance.now() - at < sysctlsMs)) return [];
    this.#sysctls = { as: undefined, at: 0 };
    const { stdout } = await this.#commands.run('sysctl', ['-e', ...keys]);
    // dots in and slashes out, or the other way round: compared without either
    const plain = (key: string): string => key.replaceAll(/[./]/g, ' ');
    const has = new Map(
      stdout.split('\n').map((line) => {
        const [key = '', value = ''] = line.split(' = ');
        return [plain(key), value.trim()] as const;
      }),
    );
    const changed = keys.filter((key) => has.has(plain(key)) && has.get(plain(key)) !== wanted[key]);
    const settings = changed.map((key) => `${key}=${wanted[key]}`);
    if (settings.length > 0) await this.#commands.must('sysctl', ['-q', '-w', ...settings]);
    this.#sysctls = { as: text, at: performance.now() };
    return settings.map((setting) => `sysctl ${setting}`);
  }

  async #fingerprintOfTables(): Promise<string> {
    const hash = createHash('sha256');
    for (const listing of await this.#tables.listings()) hash.update(listing);
    return hash.digest('base64');
  }
}

/** Equal as long as nothing of ours changed; traffic and other people's rules do not count. */
function fingerprintOf(text: string): string {
  const hash = createHash('sha256');
  for (const line of text.split('\n')) {
    const foreignRule = /^\d+:\t/.test(line) && !line.includes(`proto ${ownedProtocol}`);
    if (!foreignRule) hash.update(`${line}\n`);
  }
  return hash.digest('base64');
}
