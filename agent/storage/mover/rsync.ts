/** How rsync is called to copy and to compare, and what it says. Pure. */

/** Both are folders that end with a slash, and what is in them is meant, or both are block devices. */
export interface Way {
  readonly isDevice: boolean;
  /** This program, which rsync calls as its remote shell. */
  readonly program: readonly string[];
  readonly host: string;
  /** At the mover that sends. */
  readonly from: string;
  readonly to: string;
  /** Of folders: read all files on both sides, also those of equal size and time. */
  readonly byChecksum?: true;
  /** Most that is sent. */
  readonly bytesPerSecond?: number | undefined;
}

const always = [
  '--numeric-ids',
  // An interrupted pass goes on where it was, and a later pass sends the changed blocks alone.
  '--inplace',
  '--no-whole-file',
  '--timeout=60',
] as const;
const ofFolders = [
  // Owners, times, hard links, ACLs, extended attributes and holes.
  '-aHAXS',
  // Times of files are compared to the nanosecond. By whole seconds, a page that is written soon after a pass is missed by the next one.
  '--modify-window=-1',
  '--delete',
  // Of the file system, not of the application.
  '--exclude=/lost+found',
  '--no-inc-recursive',
] as const;
/** The most that rsync takes. Sizes of most devices are multiples of it, so a larger one has the same blocks as the other up to where that ends. */
const deviceBlock = 131_072;
/** What is in them; their times say nothing. */
const ofDevices = ['--copy-devices', '--write-devices', '--ignore-times', `--block-size=${deviceBlock}`] as const;
const optionsOf = ({ isDevice, byChecksum }: Way): readonly string[] => [
  ...always,
  ...(isDevice ? ofDevices : ofFolders),
  ...(byChecksum ? ['--checksum'] : []),
];

/** The remote shell is handed the host, then the command for the other side. */
const between = ({ program, host, from, to }: Way): readonly string[] => [
  `--rsh=${[...program, 'dial'].join(' ')}`,
  `${host}:${from}`,
  to,
];

export const copyArgs = (way: Way): string[] => [
  ...optionsOf(way),
  ...(way.bytesPerSecond === undefined ? [] : [`--bwlimit=${Math.ceil(way.bytesPerSecond / 1_024)}`]),
  '--fsync',
  '--partial',
  '--no-human-readable',
  '--info=progress2,stats2',
  ...between(way),
];

/** What it would transfer, without doing it. */
export const measureArgs = (way: Way): string[] => [
  ...optionsOf(way),
  '--dry-run',
  '--no-human-readable',
  '--info=stats2',
  ...between(way),
];

/** Of folders: prints a line for each difference, found by the checksums of all files. */
export const compareArgs = (way: Way): string[] => [
  ...optionsOf({ ...way, byChecksum: true }),
  '--dry-run',
  '--itemize-changes',
  // A target may keep coarser times, which would be a difference.
  '--modify-window=0',
  ...between(way),
];

/** The one command that the side with the data runs: to send that folder or device. */
export function isSenderCommand(command: readonly string[], source: string): boolean {
  const [name, server, sender, ...rest] = command;
  const flags = rest.slice(0, -2);
  return (
    name === 'rsync' &&
    server === '--server' &&
    sender === '--sender' &&
    rest.slice(-2).join(' ') === `. ${source}` &&
    flags.every((flag) => flag.startsWith('-') && flag !== '--daemon')
  );
}

export interface Stats {
  readonly files: number;
  readonly totalBytes: number;
  readonly transferredBytes: number;
  readonly literalBytes: number;
}

export function statsOf(output: string): Stats {
  const figure = (name: string): number =>
    Number(new RegExp(`^${name}: ([\\d,]+)`, 'm').exec(output)?.[1]?.replaceAll(',', '') ?? 0);
  return {
    files: Number(/^Number of files: [^(]*\(reg: ([\d,]+)/m.exec(output)?.[1]?.replaceAll(',', '') ?? 0),
    totalBytes: figure('Total file size'),
    transferredBytes: figure('Total transferred file size'),
    literalBytes: figure('Literal data'),
  };
}

/** Bytes of the pass that are done, by the last report in this piece of the output. */
export function bytesDone(output: string): number | undefined {
  const reports = [...output.matchAll(/([\d,]+)\s+\d+%/g)];
  const last = reports.at(-1)?.[1];
  return last === undefined ? undefined : Number(last.replaceAll(',', ''));
}

/** The connection ended, or the other side did: another attempt goes on where this one stopped. */
export const isInterruption = (code: number): boolean => [10, 12, 20, 30, 35, 255].includes(code);
/** Files that changed or went while they were read. */
export const isDisturbance = (code: number): boolean => code === 23 || code === 24;
