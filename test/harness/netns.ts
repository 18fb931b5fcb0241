/** Network namespaces on this machine: each is held by one process and gone with it, also when the test is killed. Needs root. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { repositoryRoot } from '../testbed/repository-root.ts';
import { eventually } from './eventually.ts';
import { must, run } from './program.ts';

const agentProgram = path.join(repositoryRoot, 'test', 'harness', 'netns-agent.mjs');
/** The kernel kills it when its parent dies. */
const tied = ['--pdeathsig', 'KILL'];

/** What operation `stream` of the agent in a namespace says: datagrams in a rhythm, each of which asks for an answer. */
export interface Streamed {
  readonly sent: number;
  readonly answered: number;
  readonly longestGapMs: number;
  /** More than none: answers came again while it went on. */
  readonly answeredAfterGap: number;
}

export interface Transfer {
  readonly seconds: number;
  readonly mbitPerSecond: number;
}

export class Netns {
  readonly name: string;
  readonly pid: number;
  readonly #world: NetnsFixture;
  #agent: Agent | undefined;

  constructor(clusters: NetnsFixture, name: string, pid: number) {
    this.#world = clusters;
    this.name = name;
    this.pid = pid;
  }

  /** In this namespace's network and file system. */
  async exec(program: string, ...args: string[]): Promise<string> {
    return (await must('nsenter', ['-t', String(this.pid), '-n', '-m', program, ...args])).stdout;
  }

  async tryExec(program: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    return run('nsenter', ['-t', String(this.pid), '-n', '-m', program, ...args]);
  }

  /** Lines of `ip -batch`. */
  async ip(lines: readonly string[]): Promise<void> {
    await must('nsenter', ['-t', String(this.pid), '-n', 'ip', '-batch', this.#world.file(`${lines.join('\n')}\n`)]);
  }

  async nft(text: string): Promise<void> {
    await must('nsenter', ['-t', String(this.pid), '-n', 'nft', '-f', this.#world.file(text)]);
  }

  async sysctl(settings: Readonly<Record<string, string | number>>): Promise<void> {
    await this.exec('sysctl', '-q', '-w', ...Object.entries(settings).map(([key, value]) => `${key}=${value}`));
  }

  /** Packets that the rule with this comment counted. */
  async counted(comment: string): Promise<number> {
    const { nftables } = JSON.parse(await this.exec('nft', '-j', 'list', 'ruleset')) as {
      nftables: { rule?: { comment?: string; expr: { counter?: { packets: number } }[] } }[];
    };
    return nftables
      .filter(({ rule }) => rule?.comment === comment)
      .flatMap(({ rule }) => rule?.expr ?? [])
      .reduce((sum, { counter }) => sum + (counter?.packets ?? 0), 0);
  }

  /** A process in here for as long as the world lasts, or until it is killed. */
  start(program: string, ...args: string[]): ChildProcess {
    return this.#world.start('nsenter', ['-t', String(this.pid), '-n', '-m', program, ...args]);
  }

  async agent(): Promise<Agent> {
    this.#agent ??= await Agent.start(this.#world, this);
    return this.#agent;
  }

  /** TCP and UDP servers on `port`. */
  async serve(port: number): Promise<void> {
    const agent = await this.agent();
    await agent.ask('serveTcp', { port });
    await agent.ask('serveUdp', { port });
  }

  /** Address from which the server there saw this namespace. */
  async who(address: string, port: number, bind?: string): Promise<string> {
    const agent = await this.agent();
    return ((await agent.ask('who', { address, port, bind })) as { seen: string }).seen;
  }

  async transfer(address: string, port: number, bytes: number, direction: 'up' | 'down'): Promise<Transfer> {
    return (await (await this.agent()).ask('transfer', { address, port, bytes, direction })) as Transfer;
  }

  /** Those TCP ports of that address that take a connection from here. */
  async openPorts(address: string, ports: readonly number[], timeoutMs?: number): Promise<readonly number[]> {
    return ((await (await this.agent()).ask('scan', { address, ports, timeoutMs })) as { open: number[] }).open;
  }

  async udp(
    address: string,
    port: number,
    options: { size?: number; hex?: string; bind?: string; timeoutMs?: number } = {},
  ): Promise<{ answered: boolean; from?: string; size?: number }> {
    return (await (await this.agent()).ask('udp', { address, port, ...options })) as { answered: boolean };
  }
}

export class Agent {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #last = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(clusters: NetnsFixture, { pid, name }: Netns): Promise<Agent> {
    const child = clusters.start('nsenter', ['-t', String(pid), '-n', process.execPath, agentProgram], 'pipe');
    const agent = new Agent(child);
    const ready = new Promise((resolve, reject) => agent.#waiting.set(0, { resolve, reject }));
    readline.createInterface({ input: child.stdout! }).on('line', (line) => {
      const { id, value, error } = JSON.parse(line) as { id: number; value?: unknown; error?: string };
      const waiting = agent.#waiting.get(id);
      agent.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(`${name}: ${error}`));
    });
    child.on('exit', () => {
      for (const { reject } of agent.#waiting.values()) reject(new Error(`the agent in ${name} ended`));
    });
    await ready;
    return agent;
  }

  ask(operation: string, parameters: Readonly<Record<string, unknown>>): Promise<unknown> {
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdin?.write(`${JSON.stringify({ id, operation, ...parameters })}\n`);
    });
  }
}

/** All namespaces of a test; `close` leaves none. */
export class NetnsFixture {
  readonly #children = new Set<ChildProcess>();
  /** Namespaces that `add` made: others are only visited. */
  readonly #made = new Set<string>();
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-netns-'));
  #files = 0;

  /** With a private `/run`, as a pod has one: wireguard-go's sockets are found there. */
  async add(name: string): Promise<Netns> {
    const script = 'mount -t tmpfs none /run && ip link set lo up && echo ready && exec sleep infinity';
    const child = this.start('unshare', ['--net', '--mount', 'sh', '-c', script], 'pipe');
    const pid = child.pid;
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    await eventually(`namespace ${name} is there`, () => output.includes('ready'), { everyMs: 5 });
    const place = placeOf(pid);
    if (pid === undefined || place === undefined) throw new Error(`namespace ${name} has no process`);
    this.#made.add(place);
    return new Netns(this, name, pid);
  }

  /** Ends every process that is in it; the kernel takes devices and rules along, a moment later. */
  async remove({ pid }: Netns): Promise<void> {
    const place = placeOf(pid);
    const inside = [...this.#children].filter((child) => placeOf(child.pid) === place);
    const ends = inside.map((child) => new Promise((resolve) => child.once('exit', resolve)));
    const others = place !== undefined && this.#made.delete(place) ? processesIn(new Set([place])) : [];
    for (const child of inside) child.kill('SIGKILL');
    for (const other of others) end(other);
    await Promise.all(ends);
  }

  /** Ends with the world, and with this process. */
  start(program: string, args: readonly string[], stdio: 'ignore' | 'pipe' = 'ignore'): ChildProcess {
    const child = spawn('setpriv', [...tied, program, ...args], {
      stdio: [stdio, stdio, stdio === 'ignore' ? 'ignore' : 'inherit'],
    });
    this.#children.add(child);
    child.on('exit', () => this.#children.delete(child));
    return child;
  }

  /** A file that only root reads. */
  file(content: string | Buffer, name?: string): string {
    this.#files += 1;
    const file = path.join(this.folder, name ?? `file-${this.#files}`);
    writeFileSync(file, content, { mode: 0o600 });
    return file;
  }

  async close(): Promise<void> {
    const left = [...this.#children];
    const ends = left.map((child) => new Promise((resolve) => child.once('exit', resolve)));
    const others = processesIn(this.#made);
    for (const child of left) child.kill('SIGKILL');
    for (const other of others) end(other);
    await Promise.all(ends);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Undefined: it has ended. */
function placeOf(pid: number | undefined): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined;
  }
}

/** With what processes of ours had started, and left behind when they were killed. Asked while those live that hold the namespaces. */
const processesIn = (places: ReadonlySet<string>): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && places.has(placeOf(Number(name)) ?? ''))
    .map(Number);

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended meanwhile
  }
}

export interface CableEnd {
  readonly netns: Netns;
  readonly device: string;
  /** Chosen by the kernel at random unless told: then neighbours that knew an earlier device of this address go on sending to that for up to 45 s (neighbour cache). */
  readonly mac?: string;
}

/** Puts one end of a cable into each namespace. */
export async function connect(a: CableEnd, b: CableEnd, mtu = 1500): Promise<void> {
  const end = ({ device, mac }: CableEnd): string =>
    `name ${device} ${mac === undefined ? '' : `address ${mac}`} mtu ${mtu}`;
  await a.netns.ip([`link add ${end(a)} type veth peer ${end(b)} netns ${b.netns.pid}`, `link set dev ${a.device} up`]);
  await b.netns.ip([`link set dev ${b.device} up`]);
}
