/** ConfigMaps, with the consumer's root CA under a name of its own: the provider puts one of its own in every namespace (reference 5.6). */
import { configMaps } from '#shared/domain/core-kinds.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { reflectedRootCa, rootCa } from '../model/api-access.ts';
import { withDigests } from '../model/digests.ts';
import { type OutgoingKind, picked } from './kind.ts';

export const configMap: OutgoingKind<ConfigMap> = {
  name: 'configmap',
  local: configMaps,
  remote: configMaps,
  prune: (object) => withDigests(object, ['data', 'binaryData']),
  isPartial: true,
  remoteName: (name, consumer) => (name === rootCa ? reflectedRootCa(consumer) : name),
  localName: (name, consumer) => (name === reflectedRootCa(consumer) ? rootCa : name),
  isExcluded: ({ metadata }, consumer) => metadata.name === reflectedRootCa(consumer),
  copy: (local) => ({ content: picked(local, ['data', 'binaryData', 'immutable']) }),
  mustReplace: (have, want) =>
    have.immutable === true &&
    (want.immutable !== true || !sameContent(have.data, want.data) || !sameContent(have.binaryData, want.binaryData)),
};
