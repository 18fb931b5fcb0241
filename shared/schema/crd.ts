/** CustomResourceDefinitions of all kinds, from their declarations. Pure: the generator writes them to files, the CLI applies them. */
import type { CustomResourceDefinition } from '#shared/domain/core-kinds.ts';
import { allKinds } from './all-kinds.ts';
import type { KindDefinition } from './definition/kind.ts';
import { type StructuralSchema, structuralSchema } from './definition/structural.ts';

/** Label of everything that belongs to the installation. */
const installed = { 'app.kubernetes.io/part-of': 'isthmus' } as const;

export const crdName = (kind: KindDefinition): string => `${kind.plural}.${kind.group}`;

/** The schema of a whole object, `apiVersion` to `status`. */
export function objectSchema(kind: KindDefinition): StructuralSchema {
  const spec = structuralSchema(kind.spec, 'spec');
  const mayDefault = kind.specPresence === 'defaulted';
  if (mayDefault && spec.required?.length)
    throw new TypeError(`${kind.kind}: spec cannot default to {} while it requires ${spec.required.join(', ')}`);
  return {
    description: kind.description,
    type: 'object',
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: mayDefault ? { ...spec, default: {} } : spec,
      ...(kind.status === undefined ? {} : { status: structuralSchema(kind.status, 'status') }),
    },
    ...(mayDefault ? {} : { required: ['spec'] }),
    ...(kind.rules.length === 0 ? {} : { 'x-kubernetes-validations': kind.rules }),
  };
}

export function customResourceDefinition(kind: KindDefinition): CustomResourceDefinition {
  const schema = { openAPIV3Schema: objectSchema(kind) };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: crdName(kind), labels: { ...installed } },
    spec: {
      group: kind.group,
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        ...(kind.shortNames.length === 0 ? {} : { shortNames: [...kind.shortNames] }),
        categories: [...kind.categories],
      },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          additionalPrinterColumns: kind.columns.map((column) => ({ ...column })),
          // client-node's type renames the x-kubernetes-* members; the wire has them as they are here.
          schema: schema as unknown as NonNullable<CustomResourceDefinition['spec']['versions'][number]['schema']>,
          ...(kind.status === undefined ? {} : { subresources: { status: {} } }),
        },
      ],
    },
  };
}

export const customResourceDefinitions = (): CustomResourceDefinition[] => allKinds.map(customResourceDefinition);
