/** The command line's way to a cluster, for a command that is killed between two writes. */
import type { KubeClient } from '#cli/cluster/open.ts';

/** Resolves when the command was killed. */
interface CrashingClient {
  readonly kube: KubeClient;
  readonly died: Promise<void>;
}

const writes = new Set<keyof KubeClient>(['apply', 'create', 'delete', 'mergePatch']);

/** The `count`th write that changes something is done, and nothing is answered from then on. */
function crashingClient(kube: KubeClient, count: number): CrashingClient {
  let left = count;
  let die = (): void => {};
  const died = new Promise<void>((resolve) => {
    die = resolve;
  });
  const never = new Promise<never>(() => {});
  const handler: ProxyHandler<KubeClient> = {
    get(target, name: keyof KubeClient) {
      const method = target[name];
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        if (left <= 0) return never;
        const answer = await (method as (...args: unknown[]) => Promise<unknown>).apply(target, args);
        const isReview = (args[0] as { plural?: string } | undefined)?.plural === 'subjectaccessreviews';
        if (!writes.has(name) || isReview || answer === false) return answer;
        left -= 1;
        if (left > 0) return answer;
        die();
        return never;
      };
    },
  };
  return { kube: new Proxy(kube, handler), died };
}

/** Whether it got to its end. */
export async function runWithCrash(
  kube: KubeClient,
  count: number,
  command: (kube: KubeClient) => Promise<unknown>,
): Promise<boolean> {
  const crashing = crashingClient(kube, count);
  return Promise.race([crashing.died.then(() => false), command(crashing.kube).then(() => true)]);
}
