/** From what was written at two API servers to the steps of an exchange: what Liqo wrote, and what Isthmus had brought about before Liqo's next step. Pure. */
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import type { Step } from '../exchange.ts';
import type { AuditObject, Write } from './audit.ts';
import type { Words } from './words.ts';

export type Place = 'rome' | 'milan';

/** The writer: a program of Liqo, `liqoctl`, `isthmus`, `kubelet`, the `user`; undefined for Kubernetes' own controllers. */
export type WriterOf = (write: Write, at: Place) => string | undefined;

export interface Seen {
  readonly at: Place;
  readonly write: Write;
}

type Sections = Readonly<Record<string, unknown>>;

interface State {
  readonly object: AuditObject;
  readonly sections: Sections;
  readonly finalizers: number;
  readonly isEnding: boolean;
}

interface Made {
  readonly step: Step;
  readonly key: string;
}

const metadataParts = ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const;

/** Isthmus' own marks, which are no part of what it agrees on with Liqo: labels and annotations, finalizers, types of conditions. */
const isOwnMark = (text: unknown): boolean => typeof text === 'string' && text.includes('isthmus.dev');

function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value))
    return value
      .filter((one) => !isOwnMark(one) && !isOwnMark((one as { type?: unknown } | null)?.type))
      .map(withoutMarks);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !isOwnMark(key))
      .map(([key, one]) => [key, withoutMarks(one)]),
  );
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);

/** An object by its parts, in words: those of its metadata by their names, the others by theirs. */
function sectionsOf(object: AuditObject, at: Place, words: Words): Sections {
  const said = withoutMarks(words.of(object, at)) as Record<string, unknown>;
  const { apiVersion: _, kind: __, metadata = {}, ...rest } = said;
  const marks = metadataParts.map((part) => {
    const value = (metadata as Record<string, unknown>)[part];
    const owners = part === 'ownerReferences' ? (value as { kind: string; name: string }[] | undefined) : undefined;
    return [part, owners?.map(({ kind, name }) => ({ kind, name })) ?? value] as const;
  });
  return Object.fromEntries([...marks, ...Object.entries(rest)].filter(([, value]) => !isEmpty(value)));
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Isthmus has most answers cut to the metadata: what it sent is what there is then, on top of what there was. */
function objectAfter({ request, response }: Write, before: State | undefined): AuditObject {
  if (response?.kind !== 'PartialObjectMetadata') return response ?? {};
  const sent = Array.isArray(request) ? {} : request;
  return { ...(patched(before?.object, sent ?? {}) as AuditObject), metadata: response.metadata ?? {} };
}

/** By a merge patch (RFC 7386). */
function patched(value: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = typeof value === 'object' && value !== null ? { ...value } : {};
  for (const [key, one] of Object.entries(patch)) {
    if (one === null) delete result[key];
    else result[key] = patched(result[key], one);
  }
  return result;
}

/** What is another thing than before, and what is there no longer. */
function changed(before: Sections, after: Sections): Sections {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return Object.fromEntries(
    names
      .filter((name) => !isSame(before[name], after[name]))
      .map((name) => [name, after[name] ?? (Array.isArray(before[name]) ? [] : {})]),
  );
}

function manifestOf({ type, namespace, name }: Write, sections: Sections): NonNullable<Step['create']> {
  const inMetadata = Object.entries(sections).filter(([part]) => (metadataParts as readonly string[]).includes(part));
  const others = Object.entries(sections).filter(([part]) => !(metadataParts as readonly string[]).includes(part));
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name, ...(namespace === '' ? {} : { namespace }), ...Object.fromEntries(inMetadata) },
    ...Object.fromEntries(others),
  };
}

/** Of all that was written, the steps of writers that `writerOf` names, of objects that `concerns` accepts. */
export function stepsOf(
  seen: readonly Seen[],
  words: Words,
  writerOf: WriterOf,
  concerns: (seen: Seen, by: string) => boolean,
): readonly Step[] {
  const states = new Map<string, State>();
  const made: Made[] = [];
  for (const one of seen) {
    const { at, write } = one;
    for (const each of write.verb === 'deletecollection' ? eachOf(write) : [write]) {
      const key = [at, each.type.kind, each.namespace, each.name].join('/');
      const by = writerOf(each, at);
      const before = states.get(key);
      const after = stateAfter(each, at, before, words);
      if (after === undefined) states.delete(key);
      else states.set(key, after);
      if (!concerns({ at, write: each }, by ?? '')) continue;
      made.push(...stepsFor(each, at, by, before, after, words).map((step) => ({ ...step, key })));
    }
  }
  return lastOfIsthmus(made).map(({ step }) => step);
}

const eachOf = (write: Write): readonly Write[] =>
  (write.response?.items ?? []).map((response) => ({
    ...write,
    verb: 'delete',
    name: response.metadata?.name ?? '',
    response,
  }));

const isStatus = (object: AuditObject | undefined): boolean => object === undefined || object.kind === 'Status';

function stateAfter(write: Write, at: Place, before: State | undefined, words: Words): State | undefined {
  const { response, verb, type, subresource } = write;
  if (verb === 'delete' && isStatus(response)) {
    return before !== undefined && before.finalizers > 0 ? { ...before, isEnding: true } : undefined;
  }
  if (response === undefined || isStatus(response)) return before;
  const { finalizers = [], deletionTimestamp } = response.metadata ?? {};
  const isEnding = deletionTimestamp !== undefined;
  const object = objectAfter(write, before);
  // Kubernetes keeps pods until their kubelet has ended them, and namespaces until they are empty.
  const isKept =
    type.kind === 'Namespace'
      ? !(subresource === 'finalize' && isEmpty((response.spec as { finalizers?: unknown } | undefined)?.finalizers))
      : type.kind === 'Pod' && !isGraceOver(write);
  return isEnding && finalizers.length === 0 && !isKept
    ? undefined
    : { object, sections: sectionsOf(object, at, words), finalizers: finalizers.length, isEnding };
}

const isGraceOver = ({ verb, request }: Write): boolean =>
  verb === 'delete' && (request as { gracePeriodSeconds?: number } | undefined)?.gracePeriodSeconds === 0;

/** A pod keeps the spec that it was created with: what is another in it is the node that the scheduler bound it to. */
function withoutBinding({ type }: Write, before: State | undefined, sections: Sections): Sections {
  if (type.kind !== 'Pod' || before === undefined) return sections;
  const { spec: _, ...others } = sections;
  return others;
}

const statusOf = ({ status }: Sections): Sections => (status === undefined ? {} : { status });

function stepsFor(
  write: Write,
  at: Place,
  by: string | undefined,
  before: State | undefined,
  after: State | undefined,
  words: Words,
): readonly Omit<Made, 'key'>[] {
  const identity = manifestOf(write, {});
  const isIsthmus = by === 'isthmus';
  if (after === undefined) {
    // What Liqo deletes at once is gone; otherwise the last writer that held it lets it go.
    if (by !== undefined && !isIsthmus && write.verb === 'delete') return [{ step: { by, at, delete: identity } }];
    const absent = { step: { by: 'isthmus', at, absent: identity } };
    if (by === undefined || isIsthmus) return [absent];
    return [{ step: { by, at, update: { ...identity, metadata: { ...identity.metadata, finalizers: [] } } } }, absent];
  }
  if (by === undefined) return [];
  if (write.verb === 'delete') {
    if (before?.isEnding) return [];
    if (!isIsthmus) return [{ step: { by, at, delete: identity } }];
    const expected = { ...identity, metadata: { ...identity.metadata, deletionTimestamp: '$any' } };
    return [{ step: { by, at, expect: expected } }];
  }
  // What was sent: the answer has what webhooks of the other side made of it, too.
  if (before === undefined && write.verb === 'create' && write.request !== undefined) {
    const { status: _, ...sections } = sectionsOf(write.request, at, words);
    const object = manifestOf(write, sections);
    return [{ step: isIsthmus ? { by, at, expect: object } : { by, at, create: object } }];
  }
  const all = changed(before?.sections ?? {}, after.sections);
  // All else was changed by a writer that is no part of this, such as the scheduler.
  const sections = write.subresource === 'status' ? statusOf(all) : withoutBinding(write, before, all);
  if (isEmpty(sections)) return [];
  if (isIsthmus) return [{ step: { by, at, expect: manifestOf(write, sections) } }];
  const { status, ...others } = sections;
  return [
    ...(isEmpty(others) ? [] : [{ step: { by, at, update: manifestOf(write, others) } }]),
    ...(status === undefined ? [] : [{ step: { by, at, status: manifestOf(write, { status }) } }]),
  ];
}

/** Between two steps of others only what came of an object in the end is waited for: what it was on the way may be over when it is looked at. */
function lastOfIsthmus(made: readonly Made[]): readonly Made[] {
  const result: Made[] = [];
  for (const one of made) {
    if (one.step.by !== 'isthmus') {
      result.push(one);
      continue;
    }
    const since = result.findLastIndex(({ step }) => step.by !== 'isthmus') + 1;
    const earlier = result.findIndex(({ key, step }, i) => i >= since && key === one.key && step.by === 'isthmus');
    if (earlier === -1) {
      result.push(one);
      continue;
    }
    const [old] = result.splice(earlier, 1);
    result.push(merged(old as Made, one));
  }
  return result;
}

function merged(old: Made, next: Made): Made {
  const [a, b] = [old.step.expect, next.step.expect];
  if (a === undefined || b === undefined) return next;
  const metadata = { ...a.metadata, ...b.metadata };
  return { ...next, step: { ...next.step, expect: { ...a, ...b, metadata } } };
}
