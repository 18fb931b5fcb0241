/** Finds the processes of a pod by its UID in /proc, and tells when they end. Needs the host's PID namespace. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { after, type Clock } from '#shared/ports/clock.ts';

export interface PodProcess {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: with it a reused PID is not mistaken for this process. */
  readonly startTime: string;
  /** What it runs, as the kernel calls it. */
  readonly command: string;
}

export interface ProcessFinder {
  /** The process that holds the keys, which is the tunnel's; undefined while there is none. */
  find(podUid: string): PodProcess | undefined;
  /** Also checks that it still runs the same program, by reading one file of /proc. */
  isAlive(process: PodProcess): boolean;
  /** Whether it, or another with its number, exists: a tenth of the work. */
  exists(process: PodProcess): boolean;
}

/** Poll interval for the end of a process; one that was replaced under the same number is found in every so many polls. */
const look = { everyMs: 150, closelyEvery: 6 } as const;

/** Resolves when the process has ended, or the signal aborts. */
export function untilEnded(
  { clock, processes }: { readonly clock: Clock; readonly processes: Pick<ProcessFinder, 'isAlive' | 'exists'> },
  process: PodProcess,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    let looks = 0;
    let undo: (() => void) | undefined;
    const end = (): void => {
      undo?.();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const again = (): void => {
      const isThere = looks % look.closelyEvery === 0 ? processes.isAlive(process) : processes.exists(process);
      looks += 1;
      if (!isThere || signal.aborted) end();
      else undo = after(clock, look.everyMs, again);
    };
    signal.addEventListener('abort', end, { once: true });
    again();
  });
}

export interface ProcOptions {
  readonly root?: string;
  /** A path inside the process' own file system by which the right container is recognised; the pause container has none. */
  readonly holds: string;
}

export function createProcessFinder({ root = '/proc', holds }: ProcOptions): ProcessFinder {
  const lifeOf = (pid: number): Omit<PodProcess, 'pid'> | undefined => {
    const stat = read(path.join(root, String(pid), 'stat')) ?? '';
    const started = startTime(stat);
    return started === undefined ? undefined : { startTime: started, command: commandOf(stat) };
  };
  return {
    find(podUid) {
      for (const pid of pids(root)) {
        const cgroup = read(path.join(root, String(pid), 'cgroup'));
        if (cgroup === undefined || !isOfPod(cgroup, podUid)) continue;
        if (!existsSync(path.join(root, String(pid), 'root', holds))) continue;
        const life = lifeOf(pid);
        if (life !== undefined && !ofRuntime.test(life.command)) return { pid, ...life };
      }
      return undefined;
    },
    isAlive({ pid, startTime: started, command }) {
      const life = lifeOf(pid);
      return life?.startTime === started && life.command === command;
    },
    exists: ({ pid }) => existsSync(path.join(root, String(pid))),
  };
}

/** The runtime's program, as which every container's process begins, in the container's namespaces already. */
const ofRuntime = /^(runc|crun|youki)\b/;

/** In ascending order: the container's first process comes before those that it started. */
const pids = (root: string): number[] =>
  readdirSync(root)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => a - b);

/** Undefined when the process ended meanwhile. */
function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * Whether a /proc/PID/cgroup text names the pod: `/kubepods/burstable/pod<uid>/…` with the cgroupfs driver,
 * `/kubepods-burstable-pod<uid with underscores>.slice/…` with systemd's; one line per hierarchy in version 1, a single one in version 2.
 */
export function isOfPod(cgroup: string, podUid: string): boolean {
  if (podUid === '') return false;
  const spellings = new Set([podUid, podUid.replaceAll('-', '_')]);
  return cgroup.split('\n').some((line) =>
    line
      .slice(line.indexOf(':', line.indexOf(':') + 1) + 1)
      .split('/')
      .some((part) => spellings.has(/(?:^|-)pod([0-9a-zA-Z_-]+?)(?:\.slice)?$/.exec(part)?.[1] ?? '')),
  );
}

const commandOf = (stat: string): string => stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));

/** Undefined for a zombie or a dead process. The command's name may hold blanks and brackets: fields count from behind it. */
export function startTime(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
}
