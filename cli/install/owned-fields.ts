/**
 * What one field manager applied to an object, read back out of the object and its `metadata.managedFields` (format `fieldsV1`). Applied once more by the
 * same manager, it brings back exactly these fields, and takes those away that the manager applied since. Pure.
 */
import type { KubeObject } from '#shared/domain/kube-object.ts';

type Fields = { readonly [key: string]: Fields };

interface ManagedEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  readonly fieldsV1?: Fields;
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Place of the element that `k:{"name":"x"}` (with these keys), `v:"x"` (equal to it) or `i:3` means; -1: it is gone. */
function placeOf(list: readonly unknown[], key: string): number {
  const [kind, text] = [key.slice(0, 2), key.slice(2)];
  if (kind === 'i:') return Number(text) < list.length ? Number(text) : -1;
  const wanted: unknown = JSON.parse(text);
  if (kind === 'v:') return list.indexOf(wanted);
  const keys = Object.entries(wanted as Record<string, unknown>);
  return list.findIndex((one) => isMap(one) && keys.every(([name, value]) => one[name] === value));
}

function owned(value: unknown, fields: Fields): unknown {
  const inside = Object.entries(fields).filter(([key]) => key !== '.');
  if (Array.isArray(value)) {
    if (inside.length === 0) return '.' in fields ? [] : value;
    // `fieldsV1` sorts its keys, and the order of a list counts: another one would be another pod template.
    return inside
      .map(([key, more]) => ({ at: placeOf(value, key), more }))
      .filter(({ at }) => at >= 0)
      .sort((one, other) => one.at - other.at)
      .map(({ at, more }) => owned(value[at], more));
  }
  if (!isMap(value)) return value;
  if (inside.length === 0) return '.' in fields ? {} : value;
  return Object.fromEntries(
    inside.flatMap(([key, more]) => {
      const name = key.slice(2);
      return value[name] === undefined ? [] : [[name, owned(value[name], more)]];
    }),
  );
}

/** Undefined: the manager has applied nothing to it. */
export function appliedBy(object: KubeObject, manager: string): KubeObject | undefined {
  const { managedFields = [] } = object.metadata as { readonly managedFields?: readonly ManagedEntry[] };
  const entry = managedFields.find(
    (one) => one.manager === manager && one.operation === 'Apply' && (one.subresource ?? '') === '',
  );
  if (entry?.fieldsV1 === undefined) return undefined;
  const { metadata, ...fields } = owned(object, entry.fieldsV1) as Partial<KubeObject>;
  const { name, namespace } = object.metadata;
  return {
    ...fields,
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { ...metadata, name, ...(namespace !== undefined && { namespace }) },
  };
}
