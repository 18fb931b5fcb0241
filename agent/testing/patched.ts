/** What an API server makes of the patches that we send. */
import type { JsonOperation } from '#agent/offloading/consumer/pods/mutable-spec.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Json = Record<string, unknown>;

/** RFC 6902, the operations that we send. */
export function jsonPatched<T>(target: T, patch: readonly JsonOperation[]): T {
  const out = structuredClone(target);
  for (const { op, path, value } of patch) {
    const steps = path
      .split('/')
      .slice(1)
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = steps.pop() ?? '';
    const parent = steps.reduce<Json>((at, step) => at[step] as Json, out as Json);
    if (op === 'test' && JSON.stringify(parent[last]) !== JSON.stringify(value))
      throw new AppError('kube_invalid', `test failed at ${path}`);
    if (op === 'remove' && !(last in parent)) throw new AppError('kube_invalid', `nothing to remove at ${path}`);
    if (op === 'remove') delete parent[last];
    else if (op !== 'test') parent[last] = value;
  }
  return out;
}
