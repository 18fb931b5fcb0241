/**
 * Group commit: transactions that are asked for while another one is being written, or in the same turn of the event loop, share one BEGIN,
 * one COMMIT and one fsync. Each still happens whole or not at all, in the order in which they were asked for, and its promise resolves
 * after the fsync.
 */
import type { Database } from './driver.ts';

interface Transaction {
  /** Throws when its conditions do not hold, which concerns it alone: it has written nothing. */
  readonly check: () => void;
  readonly write: () => void;
}

interface Waiting extends Transaction {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupCommit {
  commit(transaction: Transaction): Promise<void>;
  /** Writes what waits, now. */
  flush(): void;
}

/** Bounds how long the event loop is held. */
const maxGroup = 200;

export function createGroupCommit(db: Database): GroupCommit {
  let waiting: Waiting[] = [];
  let planned = false;

  function plan(): void {
    if (planned || waiting.length === 0) return;
    planned = true;
    setImmediate(() => {
      planned = false;
      flushGroup();
      plan();
    });
  }

  function flushGroup(): void {
    const group = waiting.slice(0, maxGroup);
    waiting = waiting.slice(maxGroup);
    if (group.length === 0) return;
    const refused = new Map<Waiting, unknown>();
    try {
      db.exec('BEGIN IMMEDIATE');
      for (const one of group) {
        try {
          one.check();
        } catch (error) {
          refused.set(one, error);
          continue;
        }
        one.write();
      }
      db.exec('COMMIT');
    } catch (error) {
      rollBack(db);
      for (const one of group) one.reject(refused.get(one) ?? error);
      return;
    }
    for (const one of group) {
      if (refused.has(one)) one.reject(refused.get(one));
      else one.resolve();
    }
  }

  return {
    commit: (transaction) =>
      new Promise((resolve, reject) => {
        waiting.push({ ...transaction, resolve, reject });
        plan();
      }),
    flush() {
      while (waiting.length > 0) flushGroup();
    },
  };
}

/** SQLite has rolled back by itself after some errors, a full disk among them, and then refuses to do so again. */
function rollBack(db: Database): void {
  try {
    db.exec('ROLLBACK');
  } catch {
    // Nothing is open any more.
  }
}
