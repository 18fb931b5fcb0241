/**
 * How a claim grows: what is asked of the real claim, what the volume says then, and what the claim says of it in Kubernetes' own conditions and
 * fields. At a provider all of that is said by the real claim and passed on; in this cluster a kubelet has its part in it. Pure.
 */
import { type Condition, type ConditionInput, findCondition } from '#kube/writes/conditions.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { remoteOf } from '#shared/domain/volumes.ts';
import { amountOf, requestOf } from '../model/claims.ts';

type Claim = PersistentVolumeClaim;

export interface Growing {
  readonly home: Claim;
  readonly volume: PersistentVolume;
  readonly real: Claim;
  /** Of a volume in this cluster: the one behind it. */
  readonly source?: PersistentVolume | undefined;
}

export type GrowthStep =
  /** Also for less, while a growth has not come to its end: Kubernetes lets a claim back out of one that fails. */
  | { readonly do: 'grow'; readonly claim: Claim; readonly storage: string }
  | { readonly do: 'capacity'; readonly storage: string };

/** All conditions of a claim that are about its growth. */
const resizeConditions = ['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError'] as const;
const waitsForClaim = 'WaitingForRealClaim';
const waitsForKubelet = 'WaitingForKubelet';
const passedOn = 'SaidByRealClaim';
const longestMessage = 1_000;
const longestReason = 100;

const turns = {
  controller: 'ControllerResizeInProgress',
  infeasible: 'ControllerResizeInfeasible',
  kubeletIsDue: 'NodeResizePending',
  kubelet: 'NodeResizeInProgress',
  kubeletFails: 'NodeResizeInfeasible',
} as const;
const known: ReadonlySet<string | undefined> = new Set(Object.values(turns));
/** The volume itself has grown, and a kubelet is to grow what is on it. */
const ofKubelet: ReadonlySet<string | undefined> = new Set([turns.kubeletIsDue, turns.kubelet, turns.kubeletFails]);

const sizeOf = (claim: Claim): bigint => amountOf(claim.spec?.resources?.requests);
const turnOf = ({ status }: Claim): string | undefined => status?.allocatedResourceStatuses?.storage;

/** What the volume behind a real claim has by now, with or without its file system. */
function reachedBy({ status }: Claim): string | undefined {
  const [has, allocated] = [status?.capacity, status?.allocatedResources];
  const isGrown = ofKubelet.has(status?.allocatedResourceStatuses?.storage) && amountOf(allocated) > amountOf(has);
  return isGrown ? allocated?.storage : has?.storage;
}

/** The real claim, then the volume. */
export function growthSteps({ home, volume, real, source }: Growing): readonly GrowthStep[] {
  // An API server lets no claim grow that has no volume yet.
  if (real.status?.phase !== 'Bound') return [];
  const [wanted, asked, granted] = [sizeOf(home), sizeOf(real), amountOf(real.status.capacity)];
  const isLarge = wanted <= amountOf(volume.spec?.capacity);
  // In this cluster the resizer of its driver may have grown the volume of ours as one of its own: the real claim follows.
  if (isLarge && granted >= wanted) return [];
  const ask: GrowthStep = { do: 'grow', claim: real, storage: requestOf(home) };
  if (asked < wanted) return [ask];
  // Of a volume in this cluster the kubelet here grows the file system, as soon as the volume says that it is larger.
  const storage = source ? source.spec?.capacity?.storage : reachedBy(real);
  const reached = amountOf(storage === undefined ? undefined : { storage });
  const grown: readonly GrowthStep[] =
    storage !== undefined && !isLarge && reached >= wanted ? [{ do: 'capacity', storage }] : [];
  return asked > wanted && reached < asked && granted < wanted ? [...grown, ask] : grown;
}

/** What the claim says it has, once the real claim has it; undefined: as it is. */
export function capacityNow({ home, volume, real }: Growing): string | undefined {
  const wanted = sizeOf(home);
  const isDone =
    amountOf(home.status?.capacity) < wanted &&
    amountOf(real.status?.capacity) >= wanted &&
    amountOf(volume.spec?.capacity) >= wanted;
  return isDone ? real.status?.capacity?.storage : undefined;
}

/** Whether the claim has less than it asks for. One that is being bound has no size yet, and does not grow. */
const isWaiting = ({ home }: Growing): boolean =>
  home.status?.capacity?.storage !== undefined && sizeOf(home) > amountOf(home.status.capacity);

/** Conditions that the claim has instead of those that are `isOurs`. `isGrown`: its new size is about to be written. */
export function conditionsNow(growing: Growing, isGrown: boolean): readonly ConditionInput[] {
  const { home, volume, real, source } = growing;
  const at = remoteOf(volume);
  const { namespace, name } = real.metadata;
  const where = `claim ${namespace}/${name}${at ? ` at cluster ${at.provider}` : ''}`;
  const passed = at && isGrowthOfClaim(growing) ? fromProvider(real, where) : [];
  const isTold = passed.length > 0 && sizeOf(real) >= sizeOf(home);
  if (isGrown || isTold || !isWaiting(growing)) return passed;
  if (source && amountOf(volume.spec?.capacity) >= sizeOf(home)) {
    const message = 'the volume has grown; the kubelet grows the file system when a pod mounts it';
    return [{ type: 'FileSystemResizePending', status: 'True', reason: waitsForKubelet, message }];
  }
  const message = `${where} is to grow to ${requestOf(home)}`;
  const waits: ConditionInput = { type: 'Resizing', status: 'True', reason: waitsForClaim, message };
  return [...passed.filter(({ type }) => type !== waits.type), waits];
}

/**
 * False for a growth of the real claim beyond what the claim asks for, once the real claim has that much. Kubernetes refuses to lower a request to what a claim
 * already has, so a real claim that asks for more than its provider can give goes on failing, after the claim here asks for no more than is there.
 */
const isGrowthOfClaim = ({ home, real }: Growing): boolean =>
  sizeOf(real) <= sizeOf(home) || amountOf(real.status?.capacity) < sizeOf(home);

function fromProvider({ status }: Claim, where: string): readonly ConditionInput[] {
  return resizeConditions.flatMap((type) => {
    const said = findCondition(status?.conditions, type);
    if (said?.status !== 'True') return [];
    const message = `${where}: ${said.message || said.reason || type}`.slice(0, longestMessage);
    return [{ type, status: said.status, reason: (said.reason || passedOn).slice(0, longestReason), message }];
  });
}

/** The kubelet of this cluster, and the resizer of a driver, write such conditions of volumes in it as well; of those elsewhere only we do. */
export const isOurs = ({ volume }: Pick<Growing, 'volume'>, { type, reason }: Condition): boolean =>
  remoteOf(volume) === undefined
    ? reason === waitsForClaim || reason === waitsForKubelet
    : (resizeConditions as readonly string[]).includes(type);

/**
 * What a claim that grows says was asked for it, and whose turn it is, as Kubernetes' own resizer does: quotas count the first, and a kubelet grows the file
 * system of a claim that has it in its turn only. `conditions`: those of `conditionsNow`. Undefined: as it is.
 */
export function allocationNow(growing: Growing, conditions: readonly ConditionInput[]): object | undefined {
  const own = conditions.find(({ reason }) => reason === waitsForClaim || reason === waitsForKubelet);
  return remoteOf(growing.volume) ? allocationThere(growing, own) : allocationHere(growing, own);
}

function allocationHere({ home, real }: Growing, own: ConditionInput | undefined): object | undefined {
  const turn = turnOf(home);
  if (own === undefined) return turn === turns.controller ? withoutTurn : undefined;
  // Until the real claim was asked there is nothing to say, and while a kubelet works on an earlier growth, its size stands.
  if (sizeOf(real) < sizeOf(home) || turn === turns.kubelet) return undefined;
  return said(home, requestOf(real), own.reason === waitsForKubelet ? turns.kubeletIsDue : turns.controller);
}

/** The real claim's, as soon as its resizer has said something; older ones never do. */
function allocationThere(growing: Growing, own: ConditionInput | undefined): object | undefined {
  const { home, real } = growing;
  const { allocatedResources: there } = real.status ?? {};
  const turn = isGrowthOfClaim(growing) ? turnOf(real) : undefined;
  const isKnown = known.has(turn);
  if (!isKnown && own && sizeOf(real) < sizeOf(home)) return undefined;
  const next = isKnown ? turn : own && turns.controller;
  const storage = there?.storage ?? (next && requestOf(real));
  return said(home, storage === undefined ? undefined : atMost(storage, home), next);
}

/** A provider may not let the quotas of this cluster count more than was ever asked for here. */
function atMost(storage: string, home: Claim): string {
  const before = home.status?.allocatedResources?.storage ?? '0';
  const most = amountOf({ storage: before }) > sizeOf(home) ? before : requestOf(home);
  return amountOf({ storage }) > amountOf({ storage: most }) ? most : storage;
}

function said({ status }: Claim, storage: string | undefined, turn: string | undefined): object | undefined {
  const isSame = storage === undefined || amountOf(status?.allocatedResources) === amountOf({ storage });
  if (isSame && status?.allocatedResourceStatuses?.storage === turn) return undefined;
  return {
    ...(!isSame && { allocatedResources: { storage } }),
    allocatedResourceStatuses: { storage: turn ?? null },
  };
}

const withoutTurn = { allocatedResourceStatuses: { storage: null } } as const;

/** Of a claim with which nothing grows any more: its real claim is gone, or its volume is not bound to it. A kubelet ends its own turn. */
export function allocationOfNone(home: Claim, volume: PersistentVolume): object | undefined {
  const turn = turnOf(home);
  return turn === turns.controller || (turn !== undefined && remoteOf(volume)) ? withoutTurn : undefined;
}
