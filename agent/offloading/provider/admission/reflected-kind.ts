/** Which kinds a consumer may put into the namespaces that this provider made for it. Pure. */
import { allow, deny, type Review, type Verdict } from '#agent/admission/review.ts';
import { reflectedKinds } from '#agent/model/policies.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { PeeringPolicy, ReflectedKind } from '#shared/schema/isthmus/peering-policy.ts';

const kinds: Readonly<Record<string, ReflectedKind>> = {
  Service: 'service',
  ShadowEndpointSlice: 'endpointslice',
  Ingress: 'ingress',
  ConfigMap: 'configmap',
  Secret: 'secret',
  PersistentVolumeClaim: 'persistentvolumeclaim',
};

/** Secrets that carry the tokens of pods bear the name of a virtual node. */
const isToken = ({ object }: Pick<Review, 'object'>): boolean =>
  object?.metadata.labels?.[label.nodeName] !== undefined;

/** `consumer`: the cluster that the namespace is for; writers that are not that consumer are not looked at. */
export function validateReflectedKind(
  { object, user }: Pick<Review, 'object' | 'user'>,
  consumer: string | undefined,
  policies: readonly PeeringPolicy[],
): Verdict {
  const plain = kinds[object?.kind ?? ''];
  // What is on its way out loses its finalizers.
  if (object === undefined || plain === undefined || object.metadata.deletionTimestamp !== undefined) return allow;
  if (consumer === undefined || !(user.name === consumer || user.groups.includes(consumer))) return allow;
  const kind = plain === 'secret' && isToken({ object }) ? 'serviceaccount' : plain;
  const accepted = reflectedKinds(policies, 'asProvider', consumer);
  if (accepted.has(kind)) return allow;
  return deny(
    'policy_refused',
    `kind is ${object.kind} (${kind}): the PeeringPolicies of this provider accept spec.reflectedKinds ${[...accepted].sort().join(', ') || 'none'} of ${consumer}; ask its administrator`,
  );
}
