/** Clusters and peerings are found by their labels through an item for each label, written with the record that has it. */
import type { LabelRequirement } from '#shared/domain/label-selector.ts';
import type { PageRequest } from '../model/deps.ts';
import type { Labels } from '../model/labels.ts';
import { type Item, type Key, type Op, type Page, type Store, withPrefix } from '../ports/store.ts';
import { key, type Labelled, partition } from '../store/keys.ts';
import { pageOfMany } from '../store/pages.ts';

export interface LabelledRecord {
  readonly tenant: string;
  readonly kind: Labelled;
  readonly id: string;
}

const textOf = ([name, value]: readonly [string, string]): string => `${name}=${value}`;

const labelAt = ({ tenant, kind, id }: LabelledRecord, label: string): Key => key.label(tenant, kind, label, id);

/** For the transaction that replaces the labels of a record. `expiresAt`: of the record. */
export function labelOps(record: LabelledRecord, before: Labels, after: Labels, expiresAt?: number): Op[] {
  const [had, has] = [before, after].map((labels) => new Set(Object.entries(labels).map(textOf))) as [
    Set<string>,
    Set<string>,
  ];
  const end = expiresAt === undefined ? {} : { expiresAt };
  return [
    ...[...had].filter((label) => !has.has(label)).map((label): Op => ({ op: 'clear', ...labelAt(record, label) })),
    ...[...has]
      .filter((label) => !had.has(label))
      .map((label): Op => ({ op: 'set', ...labelAt(record, label), value: {}, ...end })),
  ];
}

/** For the transaction that gives a record its end. */
export const endingLabelOps = (record: LabelledRecord, labels: Labels | undefined, expiresAt: number): Op[] =>
  labelOps(record, {}, labels ?? {}, expiresAt);

/**
 * A page of the records that have the first of the labels, or rather the first that is asked for with its value, because fewer have that; `views` checks the
 * others. In the order of ids, or of value and id where no value is asked for.
 */
export function pageByLabel<V>(
  store: Store,
  { tenant, kind }: Omit<LabelledRecord, 'id'>,
  labels: readonly [LabelRequirement, ...LabelRequirement[]],
  request: PageRequest,
  views: (ids: readonly string[]) => Promise<readonly (V | undefined)[]>,
  signal?: AbortSignal,
): Promise<Page<V>> {
  const { key: name, value } = labels.find((label) => label.value !== undefined) ?? labels[0];
  const query = {
    partition: partition.labels(tenant),
    ...withPrefix(value === undefined ? `${kind}/${name}=` : `${kind}/${textOf([name, value])}/`),
  };
  const idOf = ({ sk }: Item): string => sk.slice(sk.lastIndexOf('/') + 1);
  return pageOfMany(store, query, request, (places: readonly Item[]) => views(places.map(idOf)), signal);
}
