/**
 * The ServiceAccounts of a consumer at its provider, where the provider gives tokens in place of certificates: one for each identity, in the tenant namespace.
 * A token and a certificate are two credentials of one user: admission, quotas and labels know that user by the name in its certificate. Pure.
 */
import type { KubeObject, Secret } from '#shared/domain/kube-object.ts';
import { controlPlaneGroup, isthmusLabel, label } from '#shared/domain/liqo-keys.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import { sliceUser } from './peer-user.ts';

const peerAccount = 'isthmus-peer';
const slicePrefix = 'isthmus-slice-';

/** `slice`: absent for the control plane. */
export const accountOf = (slice: string | undefined): string =>
  slice === undefined ? peerAccount : `${slicePrefix}${slice}`;

/** `namespace`: the tenant namespace. */
export const accountUser = (namespace: string, account: string): string =>
  `system:serviceaccount:${namespace}:${account}`;

/** Whether a user of the API server is `account`: a whole name, or the end of one from its last colon on, where the namespace is not known. */
export const isAccount = (user: string, account: string): boolean =>
  user === account || (account.startsWith(':') && user.startsWith('system:serviceaccount:') && user.endsWith(account));

/** The account that the token of an Identity has to be of; undefined: it does not say where it is at home. */
export function accountFor({ metadata, spec }: Identity): string | undefined {
  const slice = metadata.labels?.[label.resourceSliceName];
  if (spec.type === 'ResourceSlice') return slice === undefined ? undefined : `:${accountOf(slice)}`;
  return spec.namespace ? accountUser(spec.namespace, accountOf(undefined)) : undefined;
}

/** CEL over `request.userInfo`: the user may be the account of a consumer. */
export const maybePeerAccount =
  'request.userInfo.username.matches("^system:serviceaccount:[^:]+:isthmus-(peer$|slice-)")';

export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

/** The namespace of a user that may be the account of a consumer. */
export const namespaceOfAccount = ({ name }: User): string | undefined =>
  /^system:serviceaccount:([^:]+):isthmus-(?:peer$|slice-.)/.exec(name)?.[1];

/** The user as its certificate would name it; itself when it is no account of a consumer. `namespace`: that of the account. */
export function asCertified(user: User, namespace: Pick<KubeObject, 'metadata'> | undefined): User {
  const { labels = {}, name: at } = namespace?.metadata ?? {};
  const consumer = labels[label.remoteClusterId];
  if (consumer === undefined || labels[label.tenantNamespace] !== 'true' || namespaceOfAccount(user) !== at)
    return user;
  const account = user.name.slice(user.name.lastIndexOf(':') + 1);
  return account === peerAccount
    ? { name: consumer, groups: [controlPlaneGroup, ...user.groups] }
    : { name: sliceUser(account.slice(slicePrefix.length), consumer), groups: [consumer, ...user.groups] };
}

export interface AccountSubject {
  readonly kind: 'ServiceAccount';
  readonly namespace: string;
  readonly name: string;
}

/**
 * Accounts in `namespace` that have a credential: without its Secret an account has no rights. `role`: whose, the control
 * plane's or those of slices.
 */
export const accountSubjects = (
  secrets: readonly Secret[],
  namespace: string,
  role: 'control-plane' | 'slices',
): readonly AccountSubject[] =>
  secrets
    .filter(({ metadata }) => metadata.namespace === namespace && metadata.deletionTimestamp === undefined)
    .flatMap(({ metadata }) => metadata.labels?.[isthmusLabel.credentialOf] ?? [])
    .filter((account) => (account === peerAccount) === (role === 'control-plane'))
    .sort()
    .map((name) => ({ kind: 'ServiceAccount', namespace, name }));

/** `slice`: absent for the control plane. */
export const accountSubject = (namespace: string, slice: string | undefined): AccountSubject => ({
  kind: 'ServiceAccount',
  namespace,
  name: accountOf(slice),
});
