/** Loop devices of nodes that have storage. They belong to the machine and outlive every namespace, so the bed releases them itself. */
import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from '#scripts/setup/run-command.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** Name of the folder of a node's volumes: the kernel shows it in the path of each device, wherever the state folder was moved. */
export const volumesFolder = (slot: number, node: string): string => `isthmus${slot}-${node}.volumes`;

interface LoopDevice {
  readonly name: string;
  readonly 'back-file': string | null;
  readonly 'back-ino': number;
  readonly 'back-maj:min': string | null;
}

async function loopDevices(): Promise<LoopDevice[]> {
  const columns = 'NAME,BACK-FILE,BACK-INO,BACK-MAJ:MIN';
  const printed = await runCommand('losetup', ['--list', '--json', '--output', columns]);
  return printed.trim() === '' ? [] : (JSON.parse(printed) as { loopdevices: LoopDevice[] }).loopdevices;
}

/** Those of files in a folder. */
export async function devicesBehind(folder: string): Promise<string[]> {
  const isIn = ({ 'back-file': file }: LoopDevice): boolean => file?.startsWith(`${folder}/`) === true;
  return (await loopDevices()).filter(isIn).map(({ name }) => name);
}

/** Those that a node's volumes have, and those that its kubelet laid over them to hold a block volume. The upper ones come first. */
export async function devicesOf(slot: number, node = '[^/]+'): Promise<string[]> {
  const all = await loopDevices();
  const volume = new RegExp(`/isthmus${slot}-${node}\\.volumes/`);
  const own = all.filter((device) => volume.test(device['back-file'] ?? '')).map(({ name }) => name);
  const held: string[] = [];
  for (const name of own) {
    const below = await stat(name).catch(() => undefined);
    const isOver = (device: LoopDevice): boolean =>
      below !== undefined &&
      device['back-ino'] === below.ino &&
      device['back-maj:min']?.trim() === numbersOf(below.dev);
    held.push(...all.filter(isOver).map((device) => device.name));
  }
  return [...held, ...own];
}

/** As the kernel packs them for user space. */
const numbersOf = (dev: number): string =>
  `${(dev >>> 8) & 0xfff}:${(dev & 0xff) | (Math.floor(dev / 2 ** 12) & 0xfff00)}`;

const patienceMs = 15_000;

/** Call it when no process of the node runs any more: its mounts went with it. */
export async function releaseDevices(slot: number, node: string): Promise<void> {
  for (const end = performance.now() + patienceMs; ; await delay(50)) {
    const left = await devicesOf(slot, node);
    if (left.length === 0) return;
    if (performance.now() > end)
      throw new AppError(
        'deadline_exceeded',
        `loop devices of node ${node} that something still holds: ${left.join(', ')}`,
      );
    // One that is still open is released with its last user; one that went meanwhile is an error of losetup's.
    for (const name of left) await runCommand('losetup', ['--detach', name]).catch(() => undefined);
  }
}
