import { expect, test } from 'vitest';
import { reflectorNames } from '#agent/reflection/engine/options.ts';
import type { ConnectedCluster } from '#agent/runtime/connect-cluster.ts';
import type { Cache } from '#kube/model/types.ts';
import { KeyedMutex } from '#shared/async/keyed-mutex.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { SessionDeps } from './provider-session.ts';
import { Sessions } from './session-switch.ts';

const empty = {
  list: () => [],
  subscribe: () => () => undefined,
  synced: () => Promise.resolve(),
} as unknown as Cache<never>;
const caches = { cache: () => empty, scoped: () => empty };

function depsOver(provider: ConnectedCluster): SessionDeps {
  const kinds = Object.fromEntries(reflectorNames.map((name) => [name, { workers: 0, type: 'DenyList' }]));
  const options = { kinds, labelsNotReflected: [], annotationsNotReflected: [], apiSupport: false };
  return {
    consumer: 'rome',
    providerId: 'milan',
    nodeName: 'milan',
    local: { caches },
    provider,
    localPods: empty,
    shared: {
      providerMutex: new KeyedMutex(),
      deps: { nodes: empty, pod: () => undefined },
      home: () => undefined,
      followTokens: () => () => undefined,
    },
    options: () => options,
    clock: new ManualClock(),
    log: silentLog,
  } as unknown as SessionDeps;
}

/** What happened, in order. Connecting takes until the test lets it; `bad` texts lead nowhere. */
function play() {
  const happened: string[] = [];
  const held = new Map<string, () => void>();
  const stop = new AbortController();
  const sessions = new Sessions(
    {
      async connectPeer(kubeconfig, signal) {
        happened.push(`connects with ${kubeconfig}`);
        signal.addEventListener('abort', () => happened.push(`${kubeconfig} ends`), { once: true });
        await new Promise<void>((resolve) => held.set(kubeconfig, resolve));
        if (kubeconfig.startsWith('bad')) throw new Error(`${kubeconfig} is no kubeconfig`);
        return { api: { kubeconfig }, caches } as unknown as ConnectedCluster;
      },
      over: depsOver,
      informed: async () => undefined,
      map: () => {
        happened.push('begins');
        return undefined;
      },
      log: silentLog,
      onSession: () => happened.push('session'),
      onProblem: () => happened.push('problem'),
    },
    stop.signal,
  );
  const connect = async (kubeconfig: string): Promise<void> => {
    while (!held.has(kubeconfig) && !stop.signal.aborted) await new Promise(setImmediate);
    held.get(kubeconfig)?.();
    await sessions.settled();
  };
  return {
    sessions,
    happened,
    stop,
    /** Lets the connection come about; waits for all replacements that are on their way. */
    connect,
    kubeconfig: () => (sessions.current?.provider.api as unknown as { kubeconfig: string } | undefined)?.kubeconfig,
  };
}

test('another kubeconfig replaces the session once its own connection is there, and the same one does not', async () => {
  const { sessions, happened, connect, kubeconfig, stop } = play();
  sessions.use('first');
  await connect('first');
  sessions.use('first');
  await sessions.settled();
  sessions.use('second');
  expect(kubeconfig()).toBe('first');
  await connect('second');
  expect(kubeconfig()).toBe('second');
  expect(happened).toEqual([
    ...['connects with first', 'session', 'begins'],
    ...['connects with second', 'first ends', 'session', 'begins'],
  ]);
  stop.abort();
  await sessions.end();
  expect(happened.at(-1)).toBe('second ends');
});

test('of kubeconfigs that come while one is tried only the last is tried next', async () => {
  const { sessions, happened, connect, kubeconfig, stop } = play();
  sessions.use('first');
  sessions.use('second');
  sessions.use('third');
  void connect('first');
  await connect('third');
  expect(kubeconfig()).toBe('third');
  expect(happened.filter((one) => one.startsWith('connects'))).toEqual(['connects with third']);
  stop.abort();
  await sessions.end();
});

test('one that leads nowhere leaves the session as it is, and says why until another does better', async () => {
  const { sessions, happened, connect, kubeconfig, stop } = play();
  sessions.use('first');
  await connect('first');
  sessions.use('bad');
  await connect('bad');
  expect(kubeconfig()).toBe('first');
  expect(sessions.problem).toBe('bad is no kubeconfig');
  expect(happened.at(-1)).toBe('problem');
  sessions.use('second');
  await connect('second');
  expect(sessions.problem).toBeUndefined();
  expect(kubeconfig()).toBe('second');
  stop.abort();
  await sessions.end();
});

test('after the end no connection is opened', async () => {
  const { sessions, happened, stop } = play();
  stop.abort();
  sessions.use('first');
  await sessions.end();
  expect(happened).toEqual([]);
});
