/** An item as the table holds it: the value is JSON text, because nothing is ever asked of its inside. A counter's is a number, `num`. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Item, Key } from '../../ports/store.ts';

export type Attributes = Record<string, AttributeValue>;

export const keyOf = ({ pk, sk }: Key): Attributes => ({ pk: { S: pk }, sk: { S: sk } });

/** `ttl` is rounded up: the table must never drop what is still to be seen. `exp` is what reads and conditions go by. */
export const expiryOf = (expiresAt: number | undefined): Attributes =>
  expiresAt === undefined ? {} : { exp: { N: String(expiresAt) }, ttl: { N: String(Math.ceil(expiresAt / 1_000)) } };

export const numberOf = (value: AttributeValue | undefined): number | undefined =>
  value?.N === undefined ? undefined : Number(value.N);

export const textOf = (value: AttributeValue | undefined): string => value?.S ?? '';

export const isExpired = (item: Attributes, now: number): boolean => {
  const expiresAt = numberOf(item.exp);
  return expiresAt !== undefined && expiresAt <= now;
};

export function itemOf<T>(item: Attributes): Item<T> {
  const expiresAt = numberOf(item.exp);
  return {
    pk: textOf(item.pk),
    sk: textOf(item.sk),
    value: (item.num === undefined ? JSON.parse(textOf(item.val)) : numberOf(item.num)) as T,
    version: numberOf(item.ver) ?? 0,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}
