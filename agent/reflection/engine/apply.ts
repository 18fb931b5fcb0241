/** Carries out what `decide` dedupe about one reflected object. */
import type { Applied, Cluster } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import { AppError, isRetryable } from '#shared/errors/app-error.ts';
import type { OutgoingKind } from '../kinds/kind.ts';
import { fingerprint } from '../model/digests.ts';
import { type CopyObject, stamped } from '../model/metadata.ts';
import type { Action, DesiredCopy } from './decide.ts';
import type { EventDedupe } from './event-dedupe.ts';
import type { ProviderClients } from './provider-clients.ts';

export interface Subject {
  readonly key: string;
  readonly kind: OutgoingKind;
  /** Lean, both. */
  readonly local: KubeObject | undefined;
  readonly remote: KubeObject | undefined;
  readonly at: { readonly namespace: string; readonly name: string };
}

export interface ApplyDeps {
  readonly local: Pick<Cluster, 'api' | 'events'>;
  readonly peer: ProviderClients;
  readonly provider: string;
  readonly dedupe: EventDedupe;
  /** The copy with all its contents; undefined when the object has changed meanwhile: its event comes. */
  readonly whole: (local: KubeObject) => Promise<CopyObject | undefined>;
}

/** Retry interval while a foreign object has our name: its owner may remove it. */
const lookAgainMs = 60_000;
/** Until the name is free again. */
const replacedMs = 100;
/** What is awaited has an event of its own; only when it does not come is there something to say. */
const awaited = { forMs: 5_000, times: 2 } as const;

export async function applyAction(
  action: Action,
  subject: Subject,
  deps: ApplyDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const { key, local } = subject;
  switch (action.do) {
    case 'nothing':
      deps.dedupe.succeeded(key);
      return settled;
    case 'warn':
      if (local) deps.dedupe.emit(key, local, 'Warning', 'FailedReflection', action.message);
      return waiting(action.message, lookAgainMs);
    case 'wait':
      if (local && deps.dedupe.failed(key) > awaited.times)
        deps.dedupe.emit(key, local, 'Warning', 'FailedReflection', action.message);
      return waiting(action.message, awaited.forMs);
    case 'delete':
      await remove(subject, action.uid, deps, signal);
      if (local && action.because === 'disabled') {
        deps.dedupe.emit(key, local, 'Normal', 'ReflectionDisabled', `no longer reflected to cluster ${deps.provider}`);
      }
      return settled;
    case 'replace':
      await remove(subject, action.uid, deps, signal);
      return again(replacedMs);
    case 'create':
    case 'update':
      return write(action, subject, deps, signal);
    default:
      return unreachable(action);
  }
}

async function remove({ kind, at }: Subject, uid: string, { peer }: ApplyDeps, signal: AbortSignal): Promise<void> {
  await peer.api.delete(kind.remote, at, { uid }, signal);
}

async function write(
  action: Extract<Action, { do: 'create' | 'update' }>,
  subject: Subject,
  deps: ApplyDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const { key, kind, local, at } = subject;
  if (!local) return settled;
  const copy = await deps.whole(local);
  if (!copy) return settled;
  const object = stamped(copy, action.fingerprint) as unknown as Applied<KubeObject>;
  try {
    // An object that another client created at this very moment is not overwritten.
    const options = { fieldManager: fieldManager.reflection, createOnly: action.do === 'create' };
    await deps.peer.api.apply(kind.remote, object, options, signal);
  } catch (error) {
    const mayReplace = action.do === 'update' && action.isNews && isInvalid(error);
    if (!mayReplace || !(await isAcceptable(kind, object, deps, signal))) throw error;
    await remove(subject, action.uid, deps, signal);
    return again(replacedMs);
  }
  deps.dedupe.succeeded(key);
  if (action.do === 'create') {
    const where = `namespace ${at.namespace} of cluster ${deps.provider}`;
    deps.dedupe.emit(key, local, 'Normal', 'SuccessfulReflection', `reflected to ${where}`);
  }
  return settled;
}

/** Judged by the API server itself; a webhook has reasons of its own. */
const isInvalid = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'kube_invalid' && error.detail.status === 422;

/** Whether the provider accepts the object as a new one: then only immutable fields refuse the change, and the object is to be replaced. */
async function isAcceptable(
  kind: OutgoingKind,
  object: Applied<KubeObject>,
  { peer }: ApplyDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const name = `tried-${fingerprint(object.metadata.name)}`;
  const options = { fieldManager: fieldManager.reflection, createOnly: true, dryRun: true };
  try {
    await peer.api.apply(kind.remote, { ...object, metadata: { ...object.metadata, name } }, options, signal);
    return true;
  } catch (error) {
    if (error instanceof AppError && !isRetryable(error)) return false;
    throw error;
  }
}

/** What caches do not hold is read now. */
export async function wholeCopy(
  pruned: KubeObject,
  { kind }: Subject,
  { local }: { readonly local: Pick<Cluster, 'api'> },
  desiredOf: (local: KubeObject) => DesiredCopy,
  signal: AbortSignal,
): Promise<CopyObject | undefined> {
  const whole = kind.isPartial ? await local.api.get(kind.local, refOf(pruned), signal) : pruned;
  if (!whole || whole.metadata.resourceVersion !== pruned.metadata.resourceVersion) return undefined;
  const desired = desiredOf(whole);
  return desired.kind === 'copy' ? desired.copy : undefined;
}
