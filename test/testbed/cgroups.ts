/** The control groups of a bed's nodes, in version 1 (one tree per controller) and version 2 (one tree). */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';

const mountPoint = '/sys/fs/cgroup';

export const bedGroup = (slot: number): string => `isthmus${slot}`;
export const nodeGroup = (slot: number, node: string): string => `${bedGroup(slot)}/${node}`;

const isVersion2 = (): boolean => existsSync(path.join(mountPoint, 'cgroup.controllers'));

/** The roots of the trees that have controllers; symbolic links such as `cpu -> cpu,cpuacct` are not in the mount table. */
const trees = (): string[] => (isVersion2() ? [mountPoint] : mountedTrees(['cgroup']));
/** Beside version 1 there may be a version 2 tree without controllers, in which runc makes groups too. */
const allTrees = (): string[] => mountedTrees(['cgroup', 'cgroup2']);

function mountedTrees(kinds: readonly string[]): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '));
  return mounts.flatMap(([, where, kind]) =>
    where?.startsWith(mountPoint) && kinds.includes(kind ?? '') ? [where] : [],
  );
}

const read = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8').trim() : '');

function delegate(dir: string): void {
  const wanted = ['cpu', 'cpuset', 'memory', 'pids', 'io', 'hugetlb'];
  const present = read(path.join(dir, 'cgroup.controllers')).split(' ');
  const enabled = read(path.join(dir, 'cgroup.subtree_control')).split(' ');
  const missing = wanted.filter((name) => present.includes(name) && !enabled.includes(name));
  if (missing.length === 0) return;
  try {
    writeFileSync(path.join(dir, 'cgroup.subtree_control'), missing.map((name) => `+${name}`).join(' '));
  } catch (cause) {
    throw new AppError(
      'host_unsupported',
      `cannot enable the cgroup controllers ${missing.join(', ')} below ${dir}: in a container, move its processes out of the root group`,
      {
        cause,
      },
    );
  }
}

/** In version 1 a fresh cpuset has no processors and accepts no process. */
function inheritCpuset(dir: string): void {
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    if (existsSync(path.join(dir, file)) && read(path.join(dir, file)) === '') {
      writeFileSync(path.join(dir, file), read(path.join(path.dirname(dir), file)));
    }
  }
}

/** Makes the node's group (the kubelet's root) and beside the pods a group `system` for the daemons. Gives back the latter's process files. */
export function makeNodeGroups(slot: number, node: string): string[] {
  const version2 = isVersion2();
  return trees().map((tree) => {
    const levels = [bedGroup(slot), nodeGroup(slot, node), `${nodeGroup(slot, node)}/system`].map((name) =>
      path.join(tree, name),
    );
    if (version2) delegate(tree);
    for (const level of levels) {
      mkdirSync(level, { recursive: true });
      if (version2 && !level.endsWith('/system')) delegate(level);
      else if (!version2) inheritCpuset(level);
    }
    return path.join(tree, nodeGroup(slot, node), 'system', 'cgroup.procs');
  });
}

/** The names of the nodes that have groups. */
export function groupedNodes(slot: number): string[] {
  const names = allTrees().flatMap((tree) => subgroups(path.join(tree, bedGroup(slot))));
  return [...new Set(names)];
}

function subgroups(dir: string): string[] {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return []; // gone, or never made
  }
}

function walk(dir: string, visit: (dir: string) => void): void {
  for (const name of subgroups(dir)) walk(path.join(dir, name), visit);
  visit(dir);
}

/** Every process in the groups below `group`: that is how pods are found, whose environment is their own. */
export function groupProcesses(group: string): number[] {
  const pids = new Set<number>();
  for (const tree of allTrees()) {
    walk(path.join(tree, group), (dir) => {
      try {
        for (const line of read(path.join(dir, 'cgroup.procs')).split('\n'))
          if (line !== '' && line !== '0') pids.add(Number(line));
      } catch {
        // the group went away between the look and the read
      }
    });
  }
  return [...pids];
}

/** Removes `group` and everything below in all trees; the kernel needs a moment after the last process has ended. */
export async function removeGroups(group: string, deadlineMs = 10_000): Promise<void> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const left = allTrees().filter((tree) => !removed(path.join(tree, group)));
    if (left.length === 0) return;
    if (performance.now() > end)
      throw new AppError('deadline_exceeded', `cannot remove the cgroup ${group} in ${left.join(', ')}`);
    await delay(50);
  }
}

function removed(dir: string): boolean {
  walk(dir, (each) => {
    try {
      rmdirSync(each);
    } catch {
      // busy, or gone
    }
  });
  return !existsSync(dir);
}

/** A group whose processes get so much memory, like a container with that limit. Gives back its process files; `removeGroups` takes it away. */
export function makeMemoryGroup(name: string, mebibytes: number): string {
  const version2 = isVersion2();
  const tree = version2 ? mountPoint : path.join(mountPoint, 'memory');
  if (version2) delegate(tree);
  const group = path.join(tree, name);
  mkdirSync(group, { recursive: true });
  const limit = version2 ? 'memory.max' : 'memory.limit_in_bytes';
  writeFileSync(path.join(group, limit), `${mebibytes * 1024 * 1024}`);
  if (existsSync(path.join(group, 'memory.swap.max'))) writeFileSync(path.join(group, 'memory.swap.max'), '0');
  return path.join(group, 'cgroup.procs');
}
