/** Carries out what `decide` said about one pod, and says what is to be waited for. */

import { isOurs } from '#agent/reflection/model/metadata.ts';
import type { OwnWrites } from '#kube/cache/own-writes.ts';
import type { Cluster, KubeApi, WriteOptions } from '#kube/model/types.ts';
import { backoffMs } from '#shared/async/backoff.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type ObjectRef, type Pod, refOf } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Log } from '#shared/ports/log.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { pruneShadowPod } from './cache-transforms.ts';
import { type Action, type Context, standsFor } from './decide.ts';
import type { JsonOperation } from './mutable-spec.ts';
import { reason, statusPatch, waitingStatus } from './pod-status.ts';
import { remoteVolumesOf } from './remote-volumes.ts';
import { shadowPod } from './shadow-pod-object.ts';

export interface ApplyDeps {
  readonly local: Pick<Cluster, 'api' | 'events'>;
  readonly peer: KubeApi;
  readonly log: Log;
  /** Takes what was written here, as the cache will show it. */
  readonly written: Pick<OwnWrites<ShadowPod>, 'wrote' | 'deleted'>;
  /** The name by which the provider knows us, as it noted it last: one that is told need not be asked for. */
  readonly creator: { get(): string | undefined; learn(creator: string | undefined): void };
  /** How often in a row the provider refused this pod, this time included. */
  readonly refusals: { count(key: string): number; forget(key: string): void };
}

/** The pod under work and where its twin belongs. */
export interface Subject {
  readonly key: string;
  readonly local?: Pod | undefined;
  readonly shadow?: ShadowPod | undefined;
  readonly remoteNamespace?: string | undefined;
  readonly context: Context;
}

/** Stops at the first action that has to be waited for, unless that is a change of the twin. */
export async function apply(
  actions: readonly Action[],
  subject: Subject,
  deps: ApplyDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  let refusal: Outcome | undefined;
  for (const action of actions) {
    const outcome = await perform(action, subject, deps, signal);
    // The local pod's status is written also when the provider refuses the change.
    if (outcome && action.do === 'updateShadow') refusal = outcome;
    else if (outcome) return outcome;
  }
  return refusal ?? settled;
}

async function perform(
  action: Action,
  subject: Subject,
  deps: ApplyDeps,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const { local, shadow } = subject;
  if (action.do === 'deleteShadow') {
    if (!shadow) return undefined;
    const wasThere = await deps.peer.delete(shadowPods, refOf(shadow), { uid: action.uid }, signal);
    if (!wasThere) deps.written.deleted(shadow);
    return undefined;
  }
  if (!local) return undefined;
  switch (action.do) {
    case 'createShadow':
      return create(local, subject, deps, signal);
    case 'updateShadow':
      return shadow && update(local, shadow, action.patch, subject, deps, signal);
    case 'label':
      await patchLocal(deps, local, { labels: action.labels }, undefined, signal);
      return undefined;
    case 'status': {
      const { record, labels, patch } = action;
      const annotations = record && { [isthmusAnnotation.remotePod]: JSON.stringify(record) };
      await writeStatus(deps, local, { ...(annotations && { annotations }), ...(labels && { labels }) }, patch, signal);
      return undefined;
    }
    case 'makeSureItEnded':
      return (await isStillThere(local, subject, deps, signal)) ? again(lookAgainMs) : undefined;
    case 'removeLocal':
      await deps.local.api.delete(pods, refOf(local), { ...uidOf(local), gracePeriodSeconds: 0 }, signal);
      return undefined;
    case 'event':
      deps.local.events.emit(local, action.type, action.reason, action.message);
      return undefined;
    default:
      return unreachable(action);
  }
}

const lookAgainMs = 1_000;

/** Its name is free here only when it ended there: of a StatefulSet two would run else. */
async function isStillThere(
  local: Pod,
  { remoteNamespace, context }: Subject,
  { peer }: ApplyDeps,
  signal: AbortSignal,
): Promise<boolean> {
  if (remoteNamespace === undefined) return false;
  const found = await peer.get(pods, { namespace: remoteNamespace, name: local.metadata.name }, signal);
  return found !== undefined && isOurs(found, context) && standsFor(found, local);
}

const uidOf = (pod: Pod): { uid?: string } => (pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid });
/** Conditions are written as one list: that of a readiness gate, set by a controller of this cluster since the pod was read, would be lost. */
const versionOf = ({ metadata: { resourceVersion } }: Pod): { resourceVersion?: string } =>
  resourceVersion === undefined ? {} : { resourceVersion };

/** Metadata can be written through the status subresource of pods, so status and record change together or not at all. */
async function patchLocal(
  { local }: ApplyDeps,
  pod: Pod,
  metadata: Readonly<Record<string, unknown>>,
  status: Record<string, unknown> | undefined,
  signal: AbortSignal,
): Promise<void> {
  const read = status?.conditions && pod.spec?.readinessGates?.length ? versionOf(pod) : {};
  const body = { metadata: { ...uidOf(pod), ...read, ...metadata }, ...(status ? { status } : {}) };
  try {
    const options: WriteOptions = { answer: 'metadata', ...(status ? { subresource: 'status' } : {}) };
    await local.api.mergePatch(pods, refOf(pod), body, options, signal);
  } catch (error) {
    if (codeOf(error) === 'kube_not_found' || (await isReplaced(local.api, pod, error, signal))) return;
    throw error;
  }
}

/** A patch that names another incarnation's uid is refused; the cache will show the new one. */
async function isReplaced(api: KubeApi, pod: Pod, error: unknown, signal: AbortSignal): Promise<boolean> {
  const code = codeOf(error);
  if (code !== 'kube_conflict' && code !== 'kube_invalid') return false;
  const now = await api.get(pods, refOf(pod), signal);
  return now?.metadata.uid !== pod.metadata.uid;
}

async function writeStatus(
  deps: ApplyDeps,
  pod: Pod,
  metadata: Readonly<Record<string, unknown>>,
  patch: Record<string, unknown>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await patchLocal(deps, pod, metadata, patch, signal);
  } catch (error) {
    if (codeOf(error) !== 'kube_invalid') throw error;
    // The API server judges transitions of containers (one that may not restart cannot leave its end); phase and conditions still matter.
    const { containerStatuses: _, initContainerStatuses: __, ...rest } = patch;
    deps.log.warn('the local API server refused container statuses', { pod: keyOf(pod), error: messageOf(error) });
    if (Object.keys(rest).length || metadata.labels) await patchLocal(deps, pod, metadata, rest, signal);
  }
}

async function create(pod: Pod, subject: Subject, deps: ApplyDeps, signal: AbortSignal): Promise<Outcome | undefined> {
  const { remoteNamespace, context, key } = subject;
  if (remoteNamespace === undefined) return undefined;
  const whole =
    pod.metadata.labels?.[label.shadowPod] === 'true' ? await deps.local.api.get(pods, refOf(pod), signal) : pod;
  if (!whole || whole.metadata.uid !== pod.metadata.uid) return undefined;
  const volumes = await remoteVolumesOf(
    whole,
    { provider: context.provider, namespace: remoteNamespace },
    deps.local.api,
    signal,
  );
  if ('missing' in volumes) return withoutVolume(pod, volumes.missing, subject, deps, signal);
  const wanted = shadowPod({ ...context, pod: whole, remoteNamespace, claims: volumes.names });
  const creator = deps.creator.get();
  if (creator !== undefined) wanted.metadata.labels = { ...wanted.metadata.labels, [label.creatorUser]: creator };
  try {
    const { metadata } = await deps.peer.create(shadowPods, wanted, { answer: 'metadata' }, signal);
    deps.creator.learn(metadata.labels?.[label.creatorUser]);
    deps.written.wrote(pruneShadowPod({ ...wanted, metadata }));
    deps.refusals.forget(key);
    const where = `namespace ${remoteNamespace} of cluster ${context.provider}`;
    deps.local.events.emit(pod, 'Normal', 'SuccessfulReflection', `offloaded to ${where}`);
    return undefined;
  } catch (error) {
    if (codeOf(error) === 'kube_already_exists') return takeOver(pod, wanted, subject, deps, signal);
    if (isRefusal(error)) return refused(pod, error as AppError, subject, deps, signal);
    throw error;
  }
}

async function update(
  pod: Pod,
  shadow: ShadowPod,
  patch: readonly JsonOperation[],
  { key, context }: Subject,
  deps: ApplyDeps,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  try {
    await deps.peer.jsonPatch(shadowPods, refOf(shadow), patch, { answer: 'metadata' }, signal);
    deps.refusals.forget(key);
    return undefined;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const attempt = deps.refusals.count(key);
    const message = `cluster ${context.provider} refused the change of the pod, which goes on as it was: ${messageOf(error)}`;
    // A twin that was replaced a moment ago refuses, too, until the cache shows its successor.
    if (attempt > 1) deps.local.events.emit(pod, 'Warning', 'FailedReflection', message);
    return waiting(message, refusedMs(attempt));
  }
}

const refusedMs = (attempt: number): number => backoffMs(attempt, { baseMs: 500, maxMs: 30_000 });

const isRefusal = (error: unknown): boolean =>
  error instanceof AppError && ['kube_invalid', 'kube_forbidden', 'kube_not_found'].includes(error.code);

/** The name is taken at the provider: by what our cache has not shown yet, by a pod that is no more, or by a stranger. */
async function takeOver(
  pod: Pod,
  wanted: ShadowPod,
  { context }: Subject,
  deps: ApplyDeps,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const ref: ObjectRef = refOf(wanted);
  const existing = await deps.peer.get(shadowPods, ref, signal);
  if (!existing) return again(50);
  if (!isOurs(existing, context)) {
    const message = `ShadowPod ${ref.namespace}/${ref.name} at cluster ${context.provider} belongs to somebody else; rename the pod`;
    deps.local.events.emit(pod, 'Warning', 'FailedReflection', message);
    return waiting(message, 60_000);
  }
  if (existing.metadata.labels?.[label.nodeName] === context.nodeName && standsFor(existing, pod)) {
    deps.written.wrote(pruneShadowPod(existing));
    return undefined;
  }
  // The pod moved here from another virtual node of this provider, or was replaced: its old twin goes first.
  if (existing.metadata.deletionTimestamp === undefined && existing.metadata.uid !== undefined) {
    await deps.peer.delete(shadowPods, ref, { uid: existing.metadata.uid }, signal);
  }
  return again(250);
}

const volumeMs = 5_000;

/** The scheduler binds pods whose claims have volumes, so this is for people to mend. */
async function withoutVolume(
  pod: Pod,
  why: string,
  { context }: Subject,
  deps: ApplyDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const patch = statusPatch(pod.status, waitingStatus(pod, reason.backOff, why, context.now));
  if (patch) {
    await writeStatus(deps, pod, {}, patch, signal);
    deps.local.events.emit(pod, 'Warning', 'FailedReflection', why);
  }
  return waiting(why, volumeMs);
}

/** Says on the pod why it does not start. Missing rights may only mean that the provider has not bound them yet. */
async function refused(
  pod: Pod,
  error: AppError,
  { context, key }: Subject,
  deps: ApplyDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const attempt = deps.refusals.count(key);
  const delayMs = refusedMs(attempt);
  const message = `cluster ${context.provider} refused the pod: ${error.message}`;
  if (error.code !== 'kube_invalid' && attempt < 3) return again(delayMs);
  const patch = statusPatch(pod.status, waitingStatus(pod, reason.refused, message, context.now));
  if (patch) {
    await writeStatus(deps, pod, {}, patch, signal);
    deps.local.events.emit(pod, 'Warning', 'FailedReflection', message);
  }
  return waiting(message, delayMs);
}
