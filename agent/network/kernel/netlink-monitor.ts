/**
 * Follows changes in a network namespace by one long-running monitor process, so that the agent does not have to poll: each poll would be a process.
 */
import type { Commands } from './commands.ts';

export interface NetlinkMonitorOptions {
  readonly commands: Pick<Commands, 'follow'>;
  /** Milliseconds of any clock that only goes forward. */
  readonly now: () => number;
  /** The program that listens. */
  readonly name: string;
  readonly args: readonly string[];
  /** Whether a printed line concerns our objects. */
  readonly isOurs: (line: string) => boolean;
}

export interface NetlinkMonitor {
  /**
   * What is known of the time since `at`: that something of ours changed, that nothing did, or nothing, because the monitor was not running all the
   * time. A change that it has not reported yet counts as later.
   */
  since(at: number): 'changed' | 'quiet' | 'unknown';
  stop(): void;
}

/** The monitor prints nothing when it has started. */
const beginsMs = 1_000;
const restartMs = { first: 1_000, most: 60_000 } as const;

/** Starts it, and again whenever it ends. */
export function startNetlinkMonitor({ commands, now, name, args, isOurs }: NetlinkMonitorOptions): NetlinkMonitor {
  let listensFrom = Number.POSITIVE_INFINITY;
  let changedAt = Number.NEGATIVE_INFINITY;
  let pauseMs: number = restartMs.first;
  let running: { stop(): void } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  function start(): void {
    listensFrom = now() + beginsMs;
    running = commands.follow(name, args, {
      line(text) {
        if (isOurs(text)) changedAt = now();
      },
      // It may have missed a change.
      complaint() {
        changedAt = now();
      },
      ended() {
        if (stopped) return;
        pauseMs = now() - listensFrom > restartMs.most ? restartMs.first : Math.min(restartMs.most, 2 * pauseMs);
        listensFrom = Number.POSITIVE_INFINITY;
        timer = setTimeout(start, pauseMs);
        timer.unref();
      },
    });
  }

  start();
  return {
    since(at) {
      if (changedAt >= at) return 'changed';
      return listensFrom > at ? 'unknown' : 'quiet';
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
      running?.stop();
    },
  };
}
