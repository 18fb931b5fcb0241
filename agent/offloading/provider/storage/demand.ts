/** What claims of a consumer take of its quota, and whether one more fits. Pure. */

import * as z from 'zod';
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { storageLimits, storageResources } from '#agent/peering/slices/storage-offer.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { guestSnapshot } from '#shared/domain/guest-volume-keys.ts';
import { type KubeObject, keyOf } from '#shared/domain/kube-object.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, addAmounts, showAmount } from '#shared/domain/pod-resources.ts';
import { tryParseQuantity } from '#shared/domain/quantity.ts';
import type { Quota } from '#shared/schema/liqo/quota.ts';

/** The annotation is older than the field, and counts more. */
export const classOf = ({ metadata, spec }: PersistentVolumeClaim): string | undefined =>
  metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? spec?.storageClassName;

const unit = 1_000_000_000n;
/** In bytes, times 10^9; 0 where nothing is said. */
export const bytesOf = (text: unknown): bigint => tryParseQuantity(String(text ?? '0')) ?? 0n;

function amounts(className: string | undefined, bytes: bigint): Amounts {
  const names = storageResources(className ?? '');
  const of = className ? 2 : 1;
  return Object.fromEntries([
    ...names.bytes.slice(0, of).map((name) => [name, bytes] as const),
    ...names.claims.slice(0, of).map((name) => [name, unit] as const),
  ]);
}

/** A claim whose growth failed may ask for less again; until then what was allocated for it counts. */
export function demandOf(claim: PersistentVolumeClaim): Amounts {
  const asked = bytesOf(claim.spec?.resources?.requests?.storage);
  const allocated = bytesOf(claim.status?.allocatedResources?.storage);
  return amounts(classOf(claim), asked > allocated ? asked : allocated);
}

const keptDemand = ({ spec }: PersistentVolume): Amounts =>
  amounts(spec?.storageClassName, bytesOf(spec?.capacity?.storage));

interface Counts {
  /** A quantity. */
  readonly size?: string | undefined;
  readonly storageClassName?: string | undefined;
}
export const showCounts = ({ size = '0', storageClassName }: Counts): string =>
  JSON.stringify({ size, ...(storageClassName !== undefined && { storageClassName }) });

const countsSchema = z.object({ size: z.string(), storageClassName: z.string().optional() });

/** Of one that was made while no webhook was registered, where a guest can have written anything: nothing. */
function countsOf(text: string): Counts {
  try {
    return countsSchema.parse(JSON.parse(text));
  } catch {
    return {};
  }
}

const said = ({ metadata }: KubeObject): Counts => countsOf(metadata.annotations?.[guestSnapshot.counts] ?? '');

/** Of a VolumeSnapshot of a guest: a quantity, the size of the volume that it was taken of. */
export const snapshotSize = (snapshot: KubeObject): string | undefined => said(snapshot).size;

/** Of a VolumeSnapshot of a guest, or of a content that keeps its data: bytes, and no claim. */
export function snapshotDemand(object: KubeObject): Amounts {
  const { size, storageClassName } = said(object);
  const bytes = bytesOf(size);
  const names = storageResources(storageClassName ?? '').bytes.slice(0, storageClassName ? 2 : 1);
  return Object.fromEntries(names.map((name) => [name, bytes] as const));
}

/** Its key among what counts: claims may have the same name. */
export const snapshotKey = (key: string): string => `volumesnapshot/${key}`;

export interface ConsumerStorage {
  readonly claims: readonly PersistentVolumeClaim[];
  /** Volumes whose claims have ended and whose data is kept. */
  readonly kept: readonly PersistentVolume[];
  /** VolumeSnapshots, and contents whose VolumeSnapshots have ended. */
  readonly snapshots?: readonly KubeObject[];
}

/** `except`: keys of claims that do not count, nor volumes that are kept for them. A kept volume that a claim has counts as the claim. */
export function usedBy(
  { claims, kept, snapshots = [] }: ConsumerStorage,
  except: ReadonlySet<string> = new Set(),
): Amounts {
  const has = new Set([...except, ...claims.map(keyOf)]);
  const counted = claims.filter((claim) => !except.has(keyOf(claim))).map(demandOf);
  const still = kept
    .filter(({ spec }) => !has.has(`${spec?.claimRef?.namespace}/${spec?.claimRef?.name}`))
    .map(keptDemand);
  const taken = snapshots.filter((one) => !except.has(snapshotKey(keyOf(one)))).map(snapshotDemand);
  return [...counted, ...still, ...taken].reduce(addAmounts, {});
}

/** `used`: without this claim. */
export function fitsStorage(quotas: readonly Quota[], demand: Amounts, used: Amounts, consumer: string): Verdict {
  if (quotas.length === 0) {
    return deny(
      'quota_missing',
      `${consumer} has no Quota here: only consumers whose ResourceSlice was accepted make claims`,
    );
  }
  if (quotas.every(({ spec }) => spec.cordoned)) {
    return deny('quota_cordoned', `all quotas of ${consumer} are cordoned: no new claims for now, what there is stays`);
  }
  const limits = storageLimits(quotas.map(({ spec }) => spec.resources));
  const problems = Object.entries(demand).flatMap(([name, asked]) => {
    const limit = ownMember(limits, name);
    const taken = ownMember(used, name) ?? 0n;
    if (limit === undefined || asked + taken <= limit) return [];
    const show = (amount: bigint): string => showAmount(name, amount);
    return [`${name}: asked ${show(asked)}, used ${show(taken)} of ${show(limit)}`];
  });
  return problems.length === 0
    ? allow
    : deny('quota_exceeded', `storage of ${consumer} exceeded: ${problems.join('; ')}`);
}
