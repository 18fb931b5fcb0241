/** Whose ShadowPod it is, and which changes of one are accepted. Pure; quota and sandbox have files of their own. */

import { isDeepStrictEqual } from 'node:util';
import { allow, deny, labelPatch, type PatchOperation, type Verdict } from '#agent/admission/review.ts';
import { creatorOf } from '#agent/model/shadow-pod-creator.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import type { GuestContainer } from './guest-pod.ts';

const creator = ({ metadata }: ShadowPod): string | undefined => metadata.labels?.[label.creatorUser];
const origin = ({ metadata }: ShadowPod): string | undefined => metadata.labels?.[label.origin];

/** The creator label is written by this hook over the client's value, and stays: quota is counted by it. */
export function creatorPatch(shadow: ShadowPod, before: ShadowPod | undefined, userName: string): PatchOperation[] {
  const wanted = before ? creator(before) : creatorOf(userName);
  return wanted === undefined ? [] : labelPatch(shadow, label.creatorUser, wanted);
}

/** Written by our own hook, or by the consumer exactly as that hook would: the pods of one user never count for another. */
export function validateCreator(shadow: ShadowPod, userName: string): Verdict {
  const noted = creator(shadow);
  const wanted = creatorOf(userName);
  if (noted === undefined || noted === wanted) return allow;
  return deny(
    'forbidden',
    `metadata.labels[${label.creatorUser}] is ${noted}, but the creator is ${wanted}; leave it out`,
  );
}

/** `namespaceOrigin`: the consumer whose namespace it is. */
export function validateOrigin(shadow: ShadowPod, namespace: string, namespaceOrigin: string | undefined): Verdict {
  const given = origin(shadow);
  if (given === undefined) {
    return deny(
      'invalid_input',
      `metadata.labels[${label.origin}] is missing: accepted is the cluster ID of the consumer, ${namespaceOrigin ?? 'the owner of the namespace'}`,
    );
  }
  if (given === namespaceOrigin) return allow;
  const owner = namespaceOrigin === undefined ? 'belongs to no consumer' : `is that of ${namespaceOrigin}`;
  return deny('forbidden', `metadata.labels[${label.origin}] is ${given}, but namespace ${namespace} ${owner}`);
}

/** What the Pod API lets change in a living pod may change; creator and origin may not. The caller checks new sizes against the quota. */
export function validateChange(before: ShadowPod, after: ShadowPod, userName: string): Verdict {
  const sameMeta =
    isDeepStrictEqual(before.metadata.labels ?? {}, after.metadata.labels ?? {}) &&
    isDeepStrictEqual(before.metadata.annotations ?? {}, after.metadata.annotations ?? {});
  // Garbage collection and the like only take finalizers off.
  if (sameMeta && isDeepStrictEqual(before.spec, after.spec)) return allow;
  const maker = creator(before);
  if (maker !== undefined && maker !== creatorOf(userName)) {
    return deny('forbidden', `user ${userName} may not change this ShadowPod: it is that of ${maker}`);
  }
  for (const key of [label.creatorUser, label.origin]) {
    const [was, is] = [before.metadata.labels?.[key], after.metadata.labels?.[key]];
    if (was !== is)
      return deny('invalid_input', `metadata.labels[${key}] is immutable (${was ?? 'absent'}, not ${is ?? 'absent'})`);
  }
  const changed = changedField(before.spec?.pod, after.spec?.pod);
  const removed = changed === undefined ? removedAmount(before.spec?.pod, after.spec?.pod) : undefined;
  if (removed !== undefined)
    return deny(
      'invalid_input',
      `spec.pod.${removed} is gone: a living pod keeps what it has of a resource that nothing is said about; name a smaller amount`,
    );
  if (changed === undefined) return allow;
  return deny(
    'invalid_input',
    `spec.pod.${changed} cannot change: accepted are changes of container images and of cpu and memory, activeDeadlineSeconds, tolerations, and more ephemeralContainers; delete the ShadowPod and create it again`,
  );
}

const containerLists = ['containers', 'initContainers'];
const changeable = new Set([...containerLists, 'ephemeralContainers', 'activeDeadlineSeconds', 'tolerations']);
const resizable = new Set(['cpu', 'memory']);

type Loose = Readonly<Record<string, unknown>>;

function changedField(before: unknown = {}, after: unknown = {}): string | undefined {
  const [was, is] = [before as Loose, after as Loose];
  const keys = new Set([...Object.keys(was), ...Object.keys(is)]);
  const plain = [...keys].filter((key) => !changeable.has(key)).find((key) => !isDeepStrictEqual(was[key], is[key]));
  if (plain !== undefined) return plain;
  const list = containerLists.find((name) => !isDeepStrictEqual(fixedParts(was[name]), fixedParts(is[name])));
  if (list !== undefined) return list;
  return isPrefix(was.ephemeralContainers, is.ephemeralContainers) ? undefined : 'ephemeralContainers';
}

const fixedParts = (containers: unknown): unknown =>
  Array.isArray(containers)
    ? containers.map(({ image, resources, ...rest }: Loose) => ({ ...rest, ...fixedResources(resources) }))
    : (containers ?? []);

function fixedResources(resources: unknown): Loose {
  if (!isRecord(resources)) return resources == null ? {} : { resources };
  const { requests, limits, ...rest } = resources;
  const others = { ...rest, ...fixedAmounts('requests', requests), ...fixedAmounts('limits', limits) };
  return Object.keys(others).length ? { resources: others } : {};
}

function fixedAmounts(key: string, amounts: unknown): Loose {
  if (!isRecord(amounts)) return amounts == null ? {} : { [key]: amounts };
  const kept = Object.entries(amounts).filter(([resource]) => !resizable.has(resource));
  return kept.length ? { [key]: Object.fromEntries(kept) } : {};
}

/** Of containers that are otherwise the same. */
function removedAmount(before: unknown = {}, after: unknown = {}): string | undefined {
  for (const list of containerLists) {
    const [was, is] = [before, after].map((pod) => (pod as Record<string, GuestContainer[] | null>)[list] ?? []);
    for (const [i, { resources }] of (was ?? []).entries()) {
      for (const kind of ['requests', 'limits'] as const) {
        const now = is?.[i]?.resources?.[kind] ?? {};
        const gone = Object.keys(resources?.[kind] ?? {}).find((resource) => ownMember(now, resource) === undefined);
        if (gone !== undefined) return `${list}[${i}].resources.${kind}.${gone}`;
      }
    }
  }
  return undefined;
}

const isRecord = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Ephemeral containers are added and never change. */
function isPrefix(before: unknown, after: unknown): boolean {
  const [was, is] = [Array.isArray(before) ? before : [], Array.isArray(after) ? after : []];
  return was.every((container, index) => isDeepStrictEqual(container, is[index]));
}
