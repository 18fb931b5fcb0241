/** Taking copies back from a provider. What fails there is thrown as `ProviderError`; so is what was under way when the session ended. */
import { abortsWith } from '#shared/async/abort-scope.ts';
import type { ResourceType } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { isCopyOf } from './decide.ts';
import { atProvider, ProviderError } from './remote-failure.ts';
import type { Replicated } from './replica.ts';
import { replicatedKinds, type Session } from './sessions.ts';

/** Of a request to a provider. */
const failureOf = (error: unknown) => (error instanceof ProviderError ? codeOf(error.failure) : undefined);

export const isSilence = (error: unknown): boolean => failureOf(error) === 'kube_unreachable';

/** True once the provider has no copy, or nothing that we may reach. */
export async function withdrawn(
  type: ResourceType<Replicated>,
  name: string,
  { connection, remoteNamespace, ended }: Session,
  consumer: string,
  signal: AbortSignal,
): Promise<boolean> {
  const until = abortsWith(signal, ended);
  const ref = { namespace: remoteNamespace, name };
  const remote = connection.api;
  try {
    const copy = await atProvider(remote.get(type, ref, until));
    if (copy === undefined || !isCopyOf(copy, consumer)) return true;
    if (copy.metadata.deletionTimestamp !== undefined) return false;
    await atProvider(remote.delete(type, ref, {}, until));
    return (await atProvider(remote.get(type, ref, until))) === undefined;
  } catch (error) {
    if (failureOf(error) === 'kube_forbidden') return true;
    throw error;
  }
}

export async function copiesLeft(
  { connection, remoteNamespace, ended }: Session,
  consumer: string,
  signal: AbortSignal,
): Promise<readonly Replicated[]> {
  const until = abortsWith(signal, ended);
  const left: Replicated[] = [];
  const labelSelector = `${label.originId}=${consumer},${label.replicated}=true`;
  for (const type of replicatedKinds) {
    try {
      left.push(...(await atProvider(connection.api.list(type, { namespace: remoteNamespace, labelSelector }, until))));
    } catch (error) {
      const code = failureOf(error);
      // Without rights our copies cannot be reached; the provider that took the rights removes them.
      if (code !== 'kube_forbidden' && code !== 'kube_not_found') throw error;
    }
  }
  return left;
}
