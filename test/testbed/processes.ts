/** Finds and ends the processes of a bed by a mark in their environment: no pid file that could go stale or lie. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';

const variable = 'ISTHMUS_TESTBED';
/** Programs that only start others, and containerd's shims, which inherit its mark but are not it. */
const passing = new Set(['nsenter', 'setsid', 'sh', 'containerd-shim']);

export interface Mark {
  readonly slot: number;
  readonly node: string;
  readonly component: string;
}

export interface BedProcess extends Mark {
  readonly pid: number;
  readonly command: string;
  /** Clock ticks since boot. */
  readonly startedAt: number;
}

export const markEnvironment = ({ slot, node, component }: Mark): Record<string, string> => ({
  [variable]: `${slot}:${node}:${component}`,
});

function readMark(environ: string): Mark | undefined {
  const entry = environ.split('\0').find((pair) => pair.startsWith(`${variable}=`));
  const [, slot, node, component] = /^[^=]+=(\d+):([^:]+):(.+)$/.exec(entry ?? '') ?? [];
  return slot && node && component ? { slot: Number(slot), node, component } : undefined;
}

function readProcess(pid: number): BedProcess | undefined {
  try {
    const mark = readMark(readFileSync(`/proc/${pid}/environ`, 'utf8'));
    if (!mark) return undefined;
    // The command in parentheses may itself hold spaces and parentheses.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const close = stat.lastIndexOf(')');
    const startedAt = Number(stat.slice(close + 2).split(' ')[19]);
    return { ...mark, pid, command: stat.slice(stat.indexOf('(') + 1, close), startedAt };
  } catch {
    return undefined; // ended meanwhile, or a kernel thread
  }
}

/** Every marked process of the slot, helpers and shims included. */
export function bedProcesses(slot: number): BedProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? [])
    .filter((found) => found.slot === slot && found.pid !== process.pid);
}

/** The components that run, by `node/component`; of several with one mark (forks), the oldest. */
export function runningComponents(slot: number): ReadonlyMap<string, number> {
  const own = bedProcesses(slot).filter(({ command }) => ![...passing].some((name) => command.startsWith(name)));
  const oldest = own.sort((a, b) => b.startedAt - a.startedAt || b.pid - a.pid);
  return new Map(oldest.map(({ node, component, pid }) => [`${node}/${component}`, pid]));
}

const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // gone already
  }
}

/** Waits until none of the processes runs any more. */
async function waitUntilGone(pids: readonly number[], deadlineMs: number): Promise<boolean> {
  const end = performance.now() + deadlineMs;
  while (pids.some(isAlive)) {
    if (performance.now() > end) return false;
    await delay(20);
  }
  return true;
}

/** Asks a process to end, and kills it when it takes longer than `patienceMs`. */
export async function endProcess(pid: number, patienceMs: number): Promise<void> {
  signal(pid, 'SIGTERM');
  if (await waitUntilGone([pid], patienceMs)) return;
  await killAll(() => [pid]);
}

/**
 * Kills what `find` finds until it finds nothing twice in a row: a look at all processes takes a while, in which one that had been seen may have
 * forked and ended before its own turn came.
 */
export async function killAll(find: () => readonly number[]): Promise<void> {
  const end = performance.now() + 20_000;
  for (let nothing = 0; nothing < 2; ) {
    const pids = find().filter(isAlive);
    if (pids.length === 0) {
      nothing += 1;
      await delay(20);
      continue;
    }
    nothing = 0;
    for (const pid of pids) signal(pid, 'SIGKILL');
    await waitUntilGone(pids, 2_000);
    if (performance.now() > end)
      throw new AppError('deadline_exceeded', `processes that do not die: ${pids.join(', ')}`, { detail: { pids } });
  }
}
