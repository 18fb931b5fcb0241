/** Which consumer a client certificate at the front door stands for, as Tenants and Secrets say now. Pure. */
import { accountOf } from '#agent/model/peer-accounts.ts';
import { doorDigests, doorOf } from '#agent/peering/credentials/front-door.ts';
import type { BoundAccount } from '#agent/peering/credentials/issue-token.ts';
import { credentialSecretName } from '#agent/peering/credentials/issued-token.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { isthmusLabel, label } from '#shared/domain/liqo-keys.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';

export interface DoorCaller extends BoundAccount {
  readonly consumer: string;
}

/** A Tenant whose consumer may come by the door. */
const isAtDoor = (tenant: Tenant): boolean => {
  const door = doorOf(tenant);
  return (
    door !== undefined &&
    'apiServer' in door &&
    tenant.metadata.deletionTimestamp === undefined &&
    tenant.spec.tenantCondition !== 'Drained'
  );
};

/** The account that a Secret of credentials is of, where the Secret has the name of that account's. */
function accountIn({ metadata }: Secret): string | undefined {
  const slice = metadata.labels?.[label.resourceSliceName];
  const account = accountOf(slice);
  const isOwn = metadata.labels?.[isthmusLabel.credentialOf] === account;
  return isOwn && metadata.name === credentialSecretName(slice === undefined ? {} : { slice }) ? account : undefined;
}

/** Digests are computed once for each version of a Secret. */
const digests = new WeakMap<Secret, readonly string[]>();
const digestsOf = (secret: Secret): readonly string[] => {
  const known = digests.get(secret) ?? doorDigests(secret);
  digests.set(secret, known);
  return known;
};

/** All callers that may come now, by the digest of their certificate. `secrets`: of all peers. */
export function doorCallers(secrets: readonly Secret[], tenants: readonly Tenant[]): ReadonlyMap<string, DoorCaller> {
  const consumers = new Map(
    tenants.filter(isAtDoor).map(({ metadata, spec }) => [metadata.namespace ?? '', spec.clusterID]),
  );
  const callers = new Map<string, DoorCaller>();
  for (const secret of secrets) {
    const { namespace = '', name, uid = '', labels = {}, deletionTimestamp } = secret.metadata;
    const consumer = consumers.get(namespace);
    const account = accountIn(secret);
    if (consumer === undefined || account === undefined || deletionTimestamp !== undefined) continue;
    if (labels[label.remoteClusterId] !== consumer) continue;
    for (const digest of digestsOf(secret))
      callers.set(digest, { consumer, namespace, account, secret: { name, uid } });
  }
  return callers;
}

interface Listing<T> {
  list(): readonly T[];
}

/** `doorCallers` of two caches, which answer with the same list until something in it changes. */
export function rememberedCallers(
  secrets: Listing<Secret>,
  tenants: Listing<Tenant>,
): () => ReadonlyMap<string, DoorCaller> {
  let known: [readonly Secret[], readonly Tenant[], ReadonlyMap<string, DoorCaller>] | undefined;
  return () => {
    const [listed, own] = [secrets.list(), tenants.list()];
    if (known === undefined || known[0] !== listed || known[1] !== own) known = [listed, own, doorCallers(listed, own)];
    return known[2];
  };
}

/** Addresses by which consumers call the door, sorted. */
export const doorHosts = (tenants: readonly Tenant[]): readonly string[] =>
  [
    ...new Set(
      tenants.filter(isAtDoor).flatMap((tenant) => {
        const door = doorOf(tenant);
        return door !== undefined && 'apiServer' in door ? [new URL(door.apiServer).hostname] : [];
      }),
    ),
  ].sort();
