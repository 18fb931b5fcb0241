/** What a claim says its volume is to begin with. Pure. */
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';

type Asking = Pick<PersistentVolumeClaim, 'metadata' | 'spec'>;
type Field = 'spec.dataSource' | 'spec.dataSourceRef';

export type DataSource =
  /** With nothing. */
  | { readonly kind: 'none' }
  /** As a copy of the claim of this name, in the claim's own namespace. */
  | { readonly kind: 'claim'; readonly field: Field; readonly name: string }
  /** `says`: kind and name, for messages. */
  | { readonly kind: 'other'; readonly field: Field; readonly says: string };

/** All that the name of a claim may have in it; the API server asks for no more of a reference than that it is there. */
const claimName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;

const none: DataSource = { kind: 'none' };

/** The API server copies one field into the other, unless `dataSourceRef` names a namespace: what both say has to be the same. */
export function dataSourceOf({ metadata, spec }: Asking): DataSource {
  let found = none;
  for (const key of ['dataSource', 'dataSourceRef'] as const) {
    const source = spec?.[key];
    if (!source) continue;
    const field: Field = `spec.${key}`;
    const { apiGroup, kind, name } = source;
    const namespace = key === 'dataSourceRef' ? spec?.dataSourceRef?.namespace : undefined;
    const isForeign = Boolean(namespace) && namespace !== metadata.namespace;
    const isOther = found.kind === 'claim' && found.name !== name;
    if (apiGroup || kind !== 'PersistentVolumeClaim' || !claimName.test(name) || isForeign || isOther)
      return { kind: 'other', field, says: `${kind} ${isForeign ? `${namespace}/` : ''}${name}` };
    if (found.kind === 'none') found = { kind: 'claim', field, name };
  }
  return found;
}

/** `namespace/name` of the claim that it is to be a copy of; undefined: of none. */
export function sourceKeyOf(claim: Asking): string | undefined {
  const source = dataSourceOf(claim);
  return source.kind === 'claim' ? `${claim.metadata.namespace}/${source.name}` : undefined;
}
