/** What a commit changes, by name, and by which of these names a wait is woken: the items that its answer is read from, or a feed. */
import type { Key, NewEvent, Op } from '../ports/store.ts';
import { key } from '../store/keys.ts';
import { isPublic } from './types.ts';

/** No key has a line break. */
const itemName = ({ pk, sk }: Key): string => `item\n${pk}\n${sk}`;
const feedName = (tenant: string): string => `feed\n${tenant}`;
const subjectName = (tenant: string, subject: string): string => `feed\n${tenant}\n${subject}`;

/** Everything that the answers depend on that can be waited for. */
export const awaited = {
  peering: (tenant: string, id: string): readonly string[] => [itemName(key.peering(tenant, id))],
  /** Of a webhook or event target, whose deletion ends the wait. */
  delivery: (tenant: string, receiver: string, id: string): readonly string[] => [
    itemName(key.webhook(tenant, receiver)),
    itemName(key.delivery(tenant, receiver, id)),
  ],
  /** What the feed shows, of one subject or of all. */
  events: (tenant: string, subject: string | undefined): readonly string[] => [
    subject === undefined ? feedName(tenant) : subjectName(tenant, subject),
  ],
};

export function* changesOf(ops: readonly Op[], events: readonly NewEvent[] = []): Generator<string> {
  for (const op of ops) if (op.op !== 'check') yield itemName(op);
  for (const { stream, subject, type } of events) {
    if (!isPublic(type)) continue;
    yield feedName(stream);
    yield subjectName(stream, subject);
  }
}
