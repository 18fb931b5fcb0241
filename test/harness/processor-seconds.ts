/** Processor time of a process in user and kernel mode, as the kernel counts it. */
import { readFileSync } from 'node:fs';

export interface ProcessorSeconds {
  /** Of the process since it began. */
  readonly own: number;
  /** Of programs that it has started, that have ended, and that it waited for. */
  readonly started: number;
}

export const ticksPerSecond = 100;
/** The fields behind the name of the program, which may have spaces: proc_pid_stat(5) counts utime as the 14th of all, the first of these is the third. */
const utime = 11;

/** `stat`: text of `/proc/PID/stat`. */
export function secondsOf(stat: string): ProcessorSeconds {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (first: number): number => (Number(fields[first]) + Number(fields[first + 1])) / ticksPerSecond;
  return { own: seconds(utime), started: seconds(utime + 2) };
}

/** Throws for a process that has ended. */
export const processorSeconds = (pid: number): ProcessorSeconds => secondsOf(readFileSync(`/proc/${pid}/stat`, 'utf8'));

let told: ProcessorSeconds = { own: 0, started: 0 };

/** Of this process, without what an earlier call has told: files of tests that share a process take turns. */
export function secondsSinceLastAsked(): ProcessorSeconds {
  const now = processorSeconds(process.pid);
  const since = { own: now.own - told.own, started: now.started - told.started };
  told = now;
  return since;
}
