/** The PeeringLock of a cluster: whose signatures it believes, and what was signed for itself. */
import { userInfo } from 'node:os';
import type { KubeClient } from '#cli/cluster/open.ts';
import { ownKeyOf } from '#cli/install/own-key.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { type PeeringLock, peeringLocks } from '#shared/schema/isthmus/peering-lock.ts';
import type { LockKey } from './lock-key.ts';

type Spec = PeeringLock['spec'];

/** As the schema of PeeringLock has it: all of them go into each announcement. */
const mostSignatures = 8;

export async function lockOf(kube: KubeClient, tenant: string): Promise<Spec> {
  return (await kube.get<PeeringLock>(peeringLocks, { name: tenant }))?.spec ?? { keys: [] };
}

const writeLock = (kube: KubeClient, tenant: string, spec: Spec): Promise<unknown> =>
  kube.apply(
    peeringLocks,
    { apiVersion: 'isthmus.dev/v1alpha1', kind: 'PeeringLock', metadata: { name: tenant }, spec } as PeeringLock,
    fieldManager.agent,
  );

export const withKey = (spec: Spec, key: string, holder?: string): Spec =>
  spec.keys.some((known) => known.key === key)
    ? spec
    : { ...spec, keys: [...spec.keys, { key, ...(holder === undefined ? {} : { holder }) }] };

export function withoutKey(spec: Spec, key: string): Spec {
  const { own, keys } = spec;
  const signatures = own?.signatures.filter((one) => one.key !== key) ?? [];
  return {
    keys: keys.filter((one) => one.key !== key),
    ...(own !== undefined && signatures.length > 0 ? { own: { ...own, signatures } } : {}),
  };
}

export interface Signing {
  readonly tenant: string;
  readonly clusterId: string;
  readonly lock: LockKey;
  /** Words for people. */
  readonly holder: string;
  /** Now, in milliseconds since the epoch. */
  readonly at: number;
}

/** The cluster believes this lock key from now on, and shows its signature to others. Undefined: the cluster has no key pair yet. */
export async function signCluster(
  kube: KubeClient,
  { tenant, clusterId, lock, holder, at }: Signing,
): Promise<string | undefined> {
  const key = await ownKeyOf(kube);
  if (key === undefined) return undefined;
  const { fingerprint } = key;
  const before = await lockOf(kube, tenant);
  // Signatures for a former key of this cluster are worth nothing any more.
  const others = before.own?.fingerprint === fingerprint ? before.own.signatures : [];
  // A signature that is there stays: each new one is a change at every peer.
  const mine = others.find((one) => one.key === lock.publicKey) ?? {
    key: lock.publicKey,
    at,
    signature: lock.sign({ tenant, clusterId, fingerprint, at }),
  };
  const signatures = [...others.filter((one) => one.key !== lock.publicKey), mine];
  if (signatures.length > mostSignatures) {
    throw new AppError(
      'invalid_input',
      `cluster ${clusterId} is signed by ${others.length} lock keys, and more than ${mostSignatures} are not accepted`,
      {
        detail: {
          remedy:
            'forget lock keys that are in use no more: isthmus lock distrust KEY --kubeconfig FILE; `kubectl get peeringlocks -o yaml` prints them. Machines that join clusters may share one lock key',
        },
      },
    );
  }
  const after: Spec = { ...withKey(before, lock.publicKey, holder), own: { fingerprint, signatures } };
  if (JSON.stringify(after) !== JSON.stringify(before)) await writeLock(kube, tenant, after);
  return fingerprint;
}

export async function changeLock(kube: KubeClient, tenant: string, change: (spec: Spec) => Spec): Promise<void> {
  await writeLock(kube, tenant, change(await lockOf(kube, tenant)));
}

/** Where this cluster is enrolled. */
export async function linkOf(kube: KubeClient): Promise<{ readonly tenant: string; readonly clusterId: string }> {
  const link = await kube.get(brokerLinks, { name: 'broker' });
  if (link !== undefined) return link.spec;
  throw new AppError('not_found', 'this cluster has joined no broker', {
    detail: { remedy: 'join it first: isthmus join NAME --kubeconfig FILE' },
  });
}

/** Words for people: whose machine signed. */
export const holder = (): string => userInfo().username;
