/** Liqo's part of an exchange, played to real API servers step by step, and what Isthmus brings about in between looked at. */
import type { KubeApi } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { eventually } from '#test/harness/eventually.ts';
import { actionsOf, type Exchange, filled, learned, type Manifest, type Step, unmet, wordsIn } from './exchange.ts';
import { kindOf, kinds } from './kinds.ts';

export interface Stage {
  /** API server of a cluster for one of Liqo's writers; the steps of Isthmus are looked at as `isthmus`. */
  readonly api: (at: Step['at'], by: string) => Promise<KubeApi> | KubeApi;
  readonly known: Map<string, string>;
  /** Makes what Liqo, or a user, makes of what is known; undefined for what only Isthmus makes. */
  readonly make: (word: string) => Promise<string | undefined> | string | undefined;
}

type Anything = KubeObject & Readonly<Record<string, unknown>>;

export async function play({ steps }: Exchange, stage: Stage): Promise<void> {
  for (const [i, step] of steps.entries()) {
    const [action] = actionsOf(step);
    const { kind, metadata } = step[action ?? 'expect'] as Manifest;
    const what = `step ${i + 1}, ${action} of ${kind} ${metadata.name} at ${step.at} by ${step.by}`;
    try {
      for (const word of wordsIn(step)) {
        const made = stage.known.has(word) ? undefined : await stage.make(word);
        if (made !== undefined) stage.known.set(word, made);
      }
      await perform(step, what, await stage.api(step.at, step.by), stage.known);
    } catch (error) {
      throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
    }
  }
}

const refOf = ({ metadata: { name, namespace } }: Manifest) => ({ name, ...(namespace && { namespace }) });

async function perform(step: Step, what: string, api: KubeApi, known: Map<string, string>): Promise<void> {
  const { create, update, status, expect: wanted, absent } = step;
  if (create) {
    const object = filled(create, known);
    const made = { ...object, metadata: await owned(object, api) } as KubeObject;
    // A new namespace has its account, which pods need, a moment later.
    if (create.kind === 'Pod') await eventually(what, () => api.create(kindOf(create), made));
    else await api.create(kindOf(create), made);
  }
  if (update) await replace(update, what, api, known);
  if (status) {
    if (step.by === 'kubelet') await bind(refOf(status), `${step.at}-1`, api);
    await replace(status, what, api, known, 'status');
  }
  if (step.delete) {
    // A kubelet has ended it before.
    const options = step.by === 'kubelet' ? { gracePeriodSeconds: 0 } : {};
    await api.delete(kindOf(step.delete), refOf(step.delete), options);
  }
  if (wanted) {
    const { object: found } = await eventually(what, async () => {
      const object = await api.get(kindOf(wanted), refOf(wanted));
      // Where nothing holds it, what is to be deleted is gone.
      if (object === undefined && isDeletion(wanted)) return { object };
      const missing = unmet(partsOf(wanted), object, known);
      if (missing.length > 0) throw new Error(missing.join('; '));
      return { object };
    });
    if (found === undefined) return;
    for (const [word, text] of learned(partsOf(wanted), found, known)) known.set(word, text);
  }
  if (absent) await eventually(what, async () => (await api.get(kindOf(absent), refOf(absent))) === undefined);
}

const isDeletion = ({ metadata }: Manifest): boolean => 'deletionTimestamp' in metadata;

/** As the scheduler, whose part in an exchange is left out. */
async function bind(ref: ReturnType<typeof refOf>, node: string, api: KubeApi): Promise<void> {
  const pod = await api.get(pods, ref);
  if (pod?.spec === undefined || pod.spec.nodeName !== undefined) return;
  const target = { apiVersion: 'v1', kind: 'Binding', metadata: ref, target: { kind: 'Node', name: node } };
  await api.post(pods, ref, 'binding', target);
}

/** Without what names it: it was found by that. */
const partsOf = ({ apiVersion: _, kind: __, ...parts }: Manifest): object => parts;

/** As any GET and PUT: a concurrent writer of the object wins. */
async function replace(
  parts: Manifest,
  what: string,
  api: KubeApi,
  known: ReadonlyMap<string, string>,
  subresource?: 'status',
): Promise<void> {
  const { apiVersion: _, kind: __, metadata, ...sections } = filled(parts, known) as Manifest & Record<string, unknown>;
  await eventually(what, async () => {
    const now = (await api.get(kindOf(parts), refOf(parts))) as Anything | undefined;
    if (now === undefined) throw new Error('there is no such object');
    const next = { ...now, ...sections, metadata: { ...now.metadata, ...(await owned({ ...parts, metadata }, api)) } };
    await api.update(kindOf(parts), keepingMarks(next, now) as KubeObject, subresource ? { subresource } : {});
    return true;
  });
}

/** Isthmus' own marks are in no exchange; Liqo leaves alone what it does not know. */
function keepingMarks(next: Anything, now: Anything): Anything {
  const isOwn = (text: string): boolean => text.includes('isthmus.dev');
  const ownOf = (marks: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(Object.entries(marks).filter(([key]) => isOwn(key)));
  const { labels, annotations, finalizers } = now.metadata;
  const metadata = {
    ...next.metadata,
    labels: { ...ownOf(labels), ...next.metadata.labels },
    annotations: { ...ownOf(annotations), ...next.metadata.annotations },
    finalizers: [...new Set([...(finalizers ?? []).filter(isOwn), ...(next.metadata.finalizers ?? [])])],
  };
  return { ...next, metadata };
}

/** Its metadata with the UIDs of its owners, by which Kubernetes tells owners apart. */
async function owned({ metadata }: Manifest, api: KubeApi): Promise<object> {
  const owners = metadata.ownerReferences;
  if (owners === undefined) return metadata;
  const found = owners.map(async ({ kind, name }) => {
    const type = kinds.find((one) => one.kind === kind);
    if (type === undefined) throw new Error(`no kind ${kind} for an owner`);
    const owner = await api.get(type, {
      name,
      ...(type.namespaced && metadata.namespace && { namespace: metadata.namespace }),
    });
    if (owner === undefined) throw new Error(`no ${kind} ${name} that could own it`);
    return { apiVersion: owner.apiVersion, kind, name, uid: owner.metadata.uid, controller: true };
  });
  return { ...metadata, ownerReferences: await Promise.all(found) };
}
