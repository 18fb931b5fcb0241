/** What a test file leaves behind in its process, by the names that Node has for it. */
import net from 'node:net';

/** What vitest itself has in each process: pipes to its own, terminals and timers. */
const isOfVitest = (kind: string): boolean => /^(?:Pipe|TTY|Timeout|Immediate)/.test(kind);

/** `kinds`: as `process.getActiveResourcesInfo()` gives them, which leaves out what keeps no process alive. Empty when nothing is left. */
export function leftBehind(kinds: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const kind of kinds) if (!isOfVitest(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${count} of ${kind}`).join(', ');
}

interface WithHandles {
  /** Not documented: for a message about a defect, and for nothing else. */
  _getActiveHandles?(): readonly unknown[];
}

/** Both ends of each connection that this process has, as `local port - remote address:port`, to find what opened it. */
export function connections(): string {
  const handles = (process as unknown as WithHandles)._getActiveHandles?.() ?? [];
  const sockets = handles.filter((handle): handle is net.Socket => handle instanceof net.Socket);
  return sockets
    .filter(({ remoteAddress }) => remoteAddress !== undefined)
    .map(({ localPort, remoteAddress, remotePort }) => `${localPort} - ${remoteAddress}:${remotePort}`)
    .join(', ');
}
