/** Secret: the nonce or its signature, which the broker applies; the key pair of a gateway, of which the broker gets the public half. */
import { withinBounds } from '#agent/model/peering-selections.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { isthmusLabel, label, name } from '#shared/domain/liqo-keys.ts';
import { gatewayKeys, networkLabel } from '#shared/domain/network-keys.ts';
import { isOfGateway } from './derived.ts';
import { type BrokerKind, bothRoles, peeringLabels, watched } from './kind.ts';
import { pick } from './manifest.ts';

export const secret: BrokerKind<'Secret'> = {
  type: secrets,
  accepted: {
    roles: bothRoles,
    names: (set) => [set.role === 'consumer' ? name.signedNonceSecret : name.nonceSecret],
    labels: [...peeringLabels, label.nonce, label.signedNonce],
    annotations: [],
    members: { data: ['nonce'], type: [] },
  },
  caches: watched(
    secrets,
    { labelSelector: isthmusLabel.peering, transform: ofHandshake },
    { labelSelector: `${networkLabel.gatewayResource}=true`, transform: publicPart },
  ),
  isDerived: isOfGateway,
  observed: ({ data }) => pick(data, 'signedNonce', 'csr', 'publicKey', 'succession'),
  takedown: { consumer: 'namespace', provider: 'namespace' },
  removedBy: 'agent',
};

/** Guests may put the label on Secrets of theirs: of those, no data enters the cache. */
function ofHandshake(stored: Secret): Secret {
  const isOurs = [name.signedNonceSecret, name.nonceSecret].some((one) => one === stored.metadata.name);
  return isOurs ? withinBounds(stored) : { ...stored, data: {} };
}

/** The private key of a gateway does not even enter the cache. */
function publicPart(stored: Secret): Secret {
  const publicKey = withinBounds(stored).data?.[gatewayKeys.publicKey];
  return { ...stored, data: publicKey === undefined ? {} : { [gatewayKeys.publicKey]: publicKey } };
}
