/** How rsync is called to copy and to compare, and what it says. Pure. */

/** Both folders end with a slash: what is in them is meant. */
export interface Way {
  /** This program, which rsync calls as its remote shell. */
  readonly program: readonly string[];
  readonly host: string;
  /** At the mover that sends. */
  readonly from: string;
  readonly to: string;
  /** Most that is sent. */
  readonly bytesPerSecond?: number | undefined;
}

const options = [
  // Owners, times, hard links, ACLs, extended attributes and holes.
  '-aHAXS',
  '--numeric-ids',
  '--delete',
  // Of the file system, not of the application.
  '--exclude=/lost+found',
  // An interrupted pass goes on where it was, and a later pass sends the changed blocks alone.
  '--inplace',
  '--no-whole-file',
  '--no-inc-recursive',
  '--timeout=60',
] as const;

/** The remote shell is handed the host, then the command for the other side. */
const between = ({ program, host, from, to }: Way): readonly string[] => [
  `--rsh=${[...program, 'dial'].join(' ')}`,
  `${host}:${from}`,
  to,
];

export const copyArgs = (way: Way): string[] => [
  ...options,
  ...(way.bytesPerSecond === undefined ? [] : [`--bwlimit=${Math.ceil(way.bytesPerSecond / 1_024)}`]),
  '--fsync',
  '--partial',
  '--no-human-readable',
  '--info=progress2,stats2',
  ...between(way),
];

/** What it would transfer, without doing it. */
export const measureArgs = (way: Way): string[] => [
  ...options,
  '--dry-run',
  '--no-human-readable',
  '--info=stats2',
  ...between(way),
];

/** Prints a line for each difference, found by the checksums of all files. */
export const compareArgs = (way: Way): string[] => [
  ...options,
  '--dry-run',
  '--checksum',
  '--itemize-changes',
  ...between(way),
];

/** The one command that the side with the data runs: to send that folder. */
export function isSenderCommand(command: readonly string[], folder: string): boolean {
  const [name, server, sender, ...rest] = command;
  const flags = rest.slice(0, -2);
  return (
    name === 'rsync' &&
    server === '--server' &&
    sender === '--sender' &&
    rest.slice(-2).join(' ') === `. ${folder}` &&
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
