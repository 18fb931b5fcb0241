/** Secrets; tokens of service accounts go another way, pod by pod (reference 5.7). */
import { secrets } from '#shared/domain/core-kinds.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { withDigests } from '../model/digests.ts';
import { type OutgoingKind, picked, sameName } from './kind.ts';

export const secret: OutgoingKind<Secret> = {
  name: 'secret',
  local: secrets,
  remote: secrets,
  prune: (object) => withDigests(object, ['data']),
  isPartial: true,
  ...sameName,
  isExcluded: ({ type }) => type === 'kubernetes.io/service-account-token',
  copy: (local) => ({ content: picked(local, ['data', 'type', 'immutable']) }),
  mustReplace: (have, want) =>
    (have.type ?? 'Opaque') !== (want.type ?? 'Opaque') ||
    (have.immutable === true && (want.immutable !== true || !sameContent(have.data, want.data))),
};
