/** What a claim says its volume is to begin with. Pure. */
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { snapshotGroup } from '#shared/domain/snapshot-kinds.ts';

type Asking = Pick<PersistentVolumeClaim, 'metadata' | 'spec'>;
type Field = 'spec.dataSource' | 'spec.dataSourceRef';

export type DataSource =
  /** With nothing. */
  | { readonly kind: 'none' }
  /** As a copy of the claim of this name, in the claim's own namespace. */
  | { readonly kind: 'claim'; readonly field: Field; readonly name: string }
  /** As what the VolumeSnapshot of this name has, in the claim's own namespace. */
  | { readonly kind: 'snapshot'; readonly field: Field; readonly name: string }
  /** `says`: kind and name, for messages. */
  | { readonly kind: 'other'; readonly field: Field; readonly says: string };

/** All that the name of a claim or VolumeSnapshot may have in it; the API server asks for no more of a reference than that it is there. */
const objectName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;

const none = { kind: 'none' } as const;

const kindOf = (apiGroup: string | undefined, kind: string): 'claim' | 'snapshot' | 'other' => {
  if (!apiGroup) return kind === 'PersistentVolumeClaim' ? 'claim' : 'other';
  return apiGroup === snapshotGroup && kind === 'VolumeSnapshot' ? 'snapshot' : 'other';
};

/** The API server copies one field into the other, unless `dataSourceRef` names a namespace: what both say has to be the same. */
export function dataSourceOf({ metadata, spec }: Asking): DataSource {
  let found: Exclude<DataSource, { kind: 'other' }> = none;
  for (const key of ['dataSource', 'dataSourceRef'] as const) {
    const source = spec?.[key];
    if (!source) continue;
    const field: Field = `spec.${key}`;
    const { apiGroup, kind, name } = source;
    const namespace = key === 'dataSourceRef' ? spec?.dataSourceRef?.namespace : undefined;
    const isForeign = Boolean(namespace) && namespace !== metadata.namespace;
    const is = kindOf(apiGroup, kind);
    const isAnother = found.kind !== 'none' && (found.kind !== is || found.name !== name);
    if (is === 'other' || !objectName.test(name) || isForeign || isAnother)
      return { kind: 'other', field, says: `${kind} ${isForeign ? `${namespace}/` : ''}${name}` };
    if (found.kind === 'none') found = { kind: is, field, name };
  }
  return found;
}

/** `namespace/name` of the claim that it is to be a copy of; undefined: of none. */
export function sourceKeyOf(claim: Asking): string | undefined {
  const source = dataSourceOf(claim);
  return source.kind === 'claim' ? `${claim.metadata.namespace}/${source.name}` : undefined;
}
