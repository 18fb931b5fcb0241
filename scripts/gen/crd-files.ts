/** One YAML file per CustomResourceDefinition, named as Kubernetes' own generators do. */
import { stringify } from 'yaml';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { customResourceDefinition } from '#shared/schema/crd.ts';

export const crdFolder = 'charts/isthmus/crds';

/** Path in the repository to content. */
export function crdFiles(): ReadonlyMap<string, string> {
  return new Map(
    allKinds.map((kind) => [
      `${crdFolder}/${kind.group}_${kind.plural}.yaml`,
      `# Written by \`npm run gen\` from shared/schema; edits are lost.\n${stringify(customResourceDefinition(kind), { lineWidth: 0, aliasDuplicateObjects: false })}`,
    ]),
  );
}
