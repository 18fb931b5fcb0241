/** Requests to an API server that is starting, busy, or late with a kind: repeated for a while instead of failing the command. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { ResourceType } from '#shared/domain/kube-object.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';

type Io = Pick<CliIo, 'clock' | 'signal'>;

const readsWithinMs = 10_000;
const allWithinMs = 15_000;

const busy: ReadonlySet<string> = new Set(['kube_throttled']);
const busyOrAway: ReadonlySet<string> = new Set(['kube_throttled', 'kube_unreachable']);

/** Of one look of a poll: undefined when it fails with one of `passing`, which `onPassing` is told. */
async function unlessPassing<T>(
  passing: ReadonlySet<string>,
  ask: () => Promise<T>,
  onPassing: (error: unknown) => void = () => undefined,
): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!passing.has(codeOf(error) ?? '')) throw error;
    onPassing(error);
    return undefined;
  }
}

/** Of one look of a poll: undefined when the API server is busy or does not answer this time. The poll has a deadline of its own. */
export const orLater = <T>(ask: () => Promise<T>): Promise<T | undefined> => unlessPassing(busyOrAway, ask);

/** Repeats `ask` while it fails with one of `passing`; after `withinMs`, fails with `late` of the last error. */
async function retry<T>(
  io: Io,
  passing: ReadonlySet<string>,
  withinMs: number,
  ask: () => Promise<T>,
  late: (last: unknown) => AppError,
): Promise<T> {
  let last: unknown;
  const { answer } = await poll(
    io,
    withinMs,
    () =>
      unlessPassing(
        passing,
        async () => ({ answer: await ask() }),
        (error) => {
          last = error;
        },
      ),
    () => late(last),
  );
  return answer;
}

/**
 * Reads again, for up to 10 s, what the API server answers with 429: for a moment after a CRD is made or removed it says of its kind that
 * "storage is (re)initializing". Writes are passed on as they are.
 */
export function retryReads(io: Io, kube: KubeClient): KubeClient {
  const reading = <T>({ plural }: ResourceType, ask: () => Promise<T>): Promise<T> =>
    retry(
      io,
      busy,
      readsWithinMs,
      ask,
      () =>
        new AppError('deadline_exceeded', `for ${readsWithinMs / 1_000} s the API server has not served ${plural}`, {
          detail: { remedy: 'repeat the command once `kubectl get --raw /readyz` says ok' },
        }),
    );
  return {
    ...kube,
    get: (type, ref) => reading(type, () => kube.get(type, ref)),
    list: (type, ...more) => reading(type, () => kube.list(type, ...more)),
    collect: (type, ...more) => reading(type, () => kube.collect(type, ...more)),
  };
}

/**
 * For a command that must not stop half-way: repeats reads, deletions and merge patches for up to 15 s while the API server is busy or away,
 * then fails with its last error. All of these may be carried out twice without harm.
 */
export function retryAll(io: Io, kube: KubeClient): KubeClient {
  const again = <T>(ask: () => Promise<T>): Promise<T> =>
    retry(io, busyOrAway, allWithinMs, ask, (last) => last as AppError);
  return {
    ...kube,
    get: (type, ref) => again(() => kube.get(type, ref)),
    list: (type, ...more) => again(() => kube.list(type, ...more)),
    collect: (type, ...more) => again(() => kube.collect(type, ...more)),
    delete: (type, ref, uid) => again(() => kube.delete(type, ref, uid)),
    mergePatch: (type, ref, patch, subresource) => again(() => kube.mergePatch(type, ref, patch, subresource)),
  };
}
