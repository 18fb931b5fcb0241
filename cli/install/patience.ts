/** Reading what an API server serves late. */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { poll } from './apply.ts';
import { orUndefined } from './cluster-state.ts';

const servedWithinMs = 10_000;

/**
 * Reads again, for up to 10 s, what the API server answers with 429: for a moment after a CRD is made or removed it says of its kind that
 * "storage is (re)initializing". Writes are passed on as they are.
 */
export function patient(io: Pick<CliIo, 'clock' | 'signal'>, kube: KubeClient): KubeClient {
  const reading = async <T>(plural: string, read: () => Promise<T>): Promise<T> => {
    const { value } = await poll(
      io,
      servedWithinMs,
      () =>
        orUndefined(
          read().then((found) => ({ value: found })),
          'kube_throttled',
        ),
      () =>
        new AppError('deadline_exceeded', `for ${servedWithinMs / 1_000} s the API server has not served ${plural}`, {
          detail: { remedy: 'repeat the command once `kubectl get --raw /readyz` says ok' },
        }),
    );
    return value;
  };
  return {
    ...kube,
    get: (type, ref) => reading(type.plural, () => kube.get(type, ref)),
    list: (type, ...more) => reading(type.plural, () => kube.list(type, ...more)),
  };
}

export const listPatiently = (io: CliIo, kube: KubeClient, type: ResourceType): Promise<KubeObject[]> =>
  patient(io, kube).list<KubeObject>(type);
