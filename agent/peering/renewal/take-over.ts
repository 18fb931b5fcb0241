/** Gives an Identity what its provider renewed. */
import type { Cluster } from '#kube/model/types.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import type { AuthParams } from '#shared/schema/definition/fields.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';

/** `how`: for the Event, after "renewed". */
export async function takeOver(
  { api, events }: Pick<Cluster, 'api' | 'events'>,
  identity: Identity,
  authParams: AuthParams,
  how: string,
  signal: AbortSignal,
): Promise<void> {
  const { apiVersion, kind, metadata, spec } = identity;
  const change = {
    apiVersion,
    kind,
    metadata: { name: metadata.name, namespace: metadata.namespace ?? '' },
    spec: { authParams: { ...spec.authParams, ...authParams } },
  };
  await api.apply(identities, change, { fieldManager: fieldManager.agent }, signal);
  const what = authParams.sealedToken === undefined ? 'Certificate' : 'Token';
  const message = `${what.toLowerCase()} for ${spec.clusterID} renewed${how && ` ${how}`}`;
  events.emit(identity, 'Normal', `${what}Renewed`, message);
}
