/** Resident memory of processes, as the kernel counts it: pages that two processes share count for each. */
import { readFileSync } from 'node:fs';

/** 0 for a process that has ended. */
export function residentMiB(pids: readonly number[]): number {
  return pids.reduce((total, pid) => total + Number(/^VmRSS:\s+(\d+)/m.exec(statusOf(pid))?.[1] ?? 0) / 1024, 0);
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}
