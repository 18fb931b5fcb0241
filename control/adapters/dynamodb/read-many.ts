/** Many items by their keys: a request of the table for each hundred, and more for what it did not get to. */
import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb';
import { AppError } from '#shared/errors/app-error.ts';
import type { Item, Many } from '../../ports/store.ts';
import type { Backoff } from './backoff.ts';
import { type Attributes, isExpired, itemOf, keyOf, textOf } from './item.ts';
import type { TableRef } from './outbox-positions.ts';

interface Reader extends TableRef {
  readonly backoff: Backoff;
  readonly maxAttempts: number;
}

/** The table takes no more at once. */
const atOnce = 100;

const nameOf = (pk: string, sk: string): string => `${pk}\n${sk}`;

/** Throws `store_busy` when the table does not get to all of them in so many attempts. */
export async function readMany<T>(
  reader: Reader,
  { keys, eventual }: Required<Many>,
  options: { readonly abortSignal?: AbortSignal },
  signal: AbortSignal | undefined,
): Promise<readonly (Item<T> | undefined)[]> {
  const now = reader.clock.now();
  const found = new Map<string, Item<T>>();
  // The table refuses a key that comes twice.
  const wanted = [...new Map(keys.map((key) => [nameOf(key.pk, key.sk), key])).values()];
  for (let start = 0; start < wanted.length; start += atOnce) {
    let left: Attributes[] = wanted.slice(start, start + atOnce).map(keyOf);
    for (let attempt = 1; left.length > 0; attempt += 1) {
      if (attempt > reader.maxAttempts)
        throw new AppError('store_busy', `the table did not read ${left.length} items in ${attempt - 1} attempts`);
      if (attempt > 1) await reader.backoff(attempt - 1, signal);
      const { Responses = {}, UnprocessedKeys = {} } = await reader.client.send(
        new BatchGetItemCommand({ RequestItems: { [reader.tableName]: { Keys: left, ConsistentRead: !eventual } } }),
        options,
      );
      for (const item of Responses[reader.tableName] ?? [])
        if (!isExpired(item, now)) found.set(nameOf(textOf(item.pk), textOf(item.sk)), itemOf<T>(item));
      left = UnprocessedKeys[reader.tableName]?.Keys ?? [];
    }
  }
  return keys.map(({ pk, sk }) => found.get(nameOf(pk, sk)));
}
