/** Finds the processes of a pod by its UID in /proc, and tells when they end. Needs the host's PID namespace. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export interface PodProcess {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: with it a PID that was given to somebody else is not mistaken for ours. */
  readonly startTime: string;
}

export interface ProcessFinder {
  /** The process that holds the keys, which is the tunnel's; undefined while there is none. */
  find(podUid: string): PodProcess | undefined;
  /** Cheap: one file. */
  isAlive(process: PodProcess): boolean;
}

export interface ProcOptions {
  readonly root?: string;
  /** A path inside the process' own file system by which the right container is recognised; the pause container has none. */
  readonly holds: string;
}

export function createProcessFinder({ root = '/proc', holds }: ProcOptions): ProcessFinder {
  const startTimeOf = (pid: number): string | undefined => {
    const stat = read(path.join(root, String(pid), 'stat'));
    return stat === undefined ? undefined : startTime(stat);
  };
  return {
    find(podUid) {
      for (const pid of pids(root)) {
        const cgroup = read(path.join(root, String(pid), 'cgroup'));
        if (cgroup === undefined || !isOfPod(cgroup, podUid)) continue;
        if (!existsSync(path.join(root, String(pid), 'root', holds))) continue;
        const started = startTimeOf(pid);
        if (started !== undefined) return { pid, startTime: started };
      }
      return undefined;
    },
    isAlive: ({ pid, startTime: started }) => startTimeOf(pid) === started,
  };
}

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

/** Undefined for a zombie or a dead process. The command's name may hold blanks and brackets: fields count from behind it. */
export function startTime(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
}
