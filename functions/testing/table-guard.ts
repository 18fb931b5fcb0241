/** Holds what a request does to the table, and that it notifies agents, against the rights of its function, as the policy of its role would: whichever test meets a missing right, fails. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Store } from '#control/ports/store.ts';
import { cloudFunctions } from '#functions/catalogue.ts';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { covers, ofTenant, type TableRights } from '#functions/table-rights.ts';

/** Not an error of the broker: it must not become an answer. */
export class MissingRight extends Error {
  override readonly name = 'MissingRight';
}

const outbox = '§outbox';
const stream = (name: string | undefined): string => `${outbox}/${name ?? 'any'}`;
/** By its route; without one, by its name. */
const byRoute = new Map<string, CloudFunction>(
  cloudFunctions.map((fn) => {
    const { trigger, name } = fn;
    if (trigger.kind === 'socket') return [trigger.route, fn];
    return [trigger.kind === 'http' ? `${trigger.method} ${trigger.path}` : name, fn];
  }),
);

const ofOne = ({ read, write }: TableRights, tenant: string): TableRights => ({
  read: ofTenant(read, tenant),
  write: ofTenant(write, tenant),
});

export interface TableGuard {
  /** What `work` asks of the store is asked by the function of this route, or of this name where it has none. */
  asFunctionOf<T>(routeKey: string, work: () => Promise<T>): Promise<T>;
  /** `tenant`: in a session for this one. */
  guarded(store: Store, tenant?: string): Store;
  /** The function that acts notifies an agent. Throws nothing, as no channel does. */
  rings(): void;
  /** Whether the function that acts takes a session for each tenant. */
  hasSessions(): boolean;
}

interface Acting {
  readonly guard: symbol;
  readonly fn: CloudFunction;
  missing: MissingRight | undefined;
  /** What a request to another broker is part of. */
  readonly within: Acting | undefined;
}

/** One for all guards of a process: Node 20 copies every instance that ever ran something into every promise that is made after it. */
const requests = new AsyncLocalStorage<Acting>();

/** The real one: a test may have put its own in its place. */
const { setTimeout, clearTimeout } = globalThis;
const idleMs = 500;
let running = 0;
let idle: NodeJS.Timeout | undefined;

/** While the instance is enabled, Node 20 calls a hook for each promise, also of test files that follow in the same process. */
async function following<T>(now: Acting, work: () => Promise<T>): Promise<T> {
  clearTimeout(idle);
  running += 1;
  try {
    return await requests.run(now, work);
  } finally {
    running -= 1;
    if (running === 0) idle = setTimeout(() => requests.disable(), idleMs).unref();
  }
}

export function createTableGuard(): TableGuard {
  const guard = Symbol('guard');

  function acting(): Acting | undefined {
    let now = requests.getStore();
    while (now !== undefined && now.guard !== guard) now = now.within;
    return now;
  }

  const hasSessions = (): boolean => acting()?.fn.access.includes('table:session') === true;

  function check(access: keyof TableRights, pk: string, tenant: string | undefined): void {
    const now = acting();
    if (now === undefined) return;
    const { name, table, signIn } = now.fn;
    const kinds = !hasSessions() ? table : tenant === undefined ? signIn : ofOne(table, tenant);
    if (covers(kinds[access], pk)) return;
    const where = tenant === undefined ? '' : ` in the session of ${tenant}`;
    now.missing = new MissingRight(
      `${name}${where} has no right to ${access} ${pk}: functions/table-rights.ts gives it ${kinds[access].join(' ')}`,
    );
    throw now.missing;
  }

  return {
    async asFunctionOf(routeKey, work) {
      const fn = byRoute.get(routeKey);
      if (fn === undefined) return work();
      const now: Acting = { guard, fn, missing: undefined, within: requests.getStore() };
      const result = await following(now, work);
      if (now.missing !== undefined) throw now.missing;
      return result;
    },
    rings() {
      const now = acting();
      if (now === undefined || now.fn.access.includes('channel:ring')) return;
      now.missing ??= new MissingRight(`${now.fn.name} has no right to notify agents: functions/catalogue.ts`);
    },
    hasSessions,
    guarded(store, tenant) {
      const checkOwn = (access: keyof TableRights, pk: string) => check(access, pk, tenant);
      return {
        get(pk, sk, signal) {
          checkOwn('read', pk);
          return store.get(pk, sk, signal);
        },
        getMany(many, signal) {
          for (const { pk } of many.keys) checkOwn('read', pk);
          return store.getMany(many, signal);
        },
        query(query, signal) {
          checkOwn('read', query.partition);
          return store.query(query, signal);
        },
        async transact(ops, events = [], signal) {
          for (const { pk } of ops) checkOwn('write', pk);
          if (events.length > 0) checkOwn('write', outbox);
          for (const event of events) checkOwn('write', stream(event.stream));
          return store.transact(ops, events, signal);
        },
        outbox(after, limit, name, signal) {
          checkOwn('read', stream(name));
          // A reader closes places that were taken and not used.
          checkOwn('write', stream(name));
          return store.outbox(after, limit, name, signal);
        },
        newestCursor(name, signal) {
          checkOwn('read', stream(name));
          return store.newestCursor(name, signal);
        },
        async endStream(name, signal) {
          checkOwn('write', outbox);
          checkOwn('write', stream(name));
          return store.endStream(name, signal);
        },
        sweep: (signal) => store.sweep(signal),
        close: () => store.close(),
      };
    },
  };
}
