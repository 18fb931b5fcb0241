/** Which kinds of objects differ between two reports about a peering: what rules of a bus choose by. */
import { canonical } from '#shared/domain/canonical-json.ts';
import type { ObservedObject } from '#shared/schema/protocol/agent-protocol.ts';

const nameOf = ({ apiVersion, kind, namespace = '', name }: ObservedObject): string =>
  JSON.stringify([apiVersion, kind, namespace, name]);

/** Sorted, each once. Empty when only what surrounds the objects differs, such as the revision that was applied. */
export function changedKinds(before: readonly ObservedObject[], after: readonly ObservedObject[]): readonly string[] {
  const known = new Map(before.map((object) => [nameOf(object), object]));
  const kinds = new Set<string>();
  for (const object of after) {
    const name = nameOf(object);
    const old = known.get(name);
    known.delete(name);
    if (old === undefined || canonical(old) !== canonical(object)) kinds.add(object.kind);
  }
  for (const gone of known.values()) kinds.add(gone.kind);
  return [...kinds].sort();
}
