/** Reading what an API server serves late. */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { poll } from './apply.ts';
import { orUndefined } from './cluster-state.ts';

/** An API server that has not served a kind before says 429 for a moment. */
export const listPatiently = (io: CliIo, kube: KubeClient, type: ResourceType): Promise<KubeObject[]> =>
  poll(
    io,
    10_000,
    () => orUndefined(kube.list<KubeObject>(type), 'kube_throttled'),
    () => new AppError('deadline_exceeded', `the API server does not list ${type.plural}`),
  );
