/** The example objects of this folder: one file for each kind, the network kinds together; several documents in each. Good in every respect. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import { apiVersionOf, type KubeResource } from '#shared/domain/kube-object.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import type { KindDefinition } from '#shared/schema/definition/kind.ts';

type Tree = Record<string, unknown>;
export interface GoldenObject {
  readonly kind: KindDefinition;
  readonly object: KubeResource<Tree | undefined, Tree>;
}

const folder = path.join(import.meta.dirname, 'objects');

export function goldenObjects(): readonly GoldenObject[] {
  return readdirSync(folder)
    .sort()
    .flatMap((file) => parseAllDocuments(readFileSync(path.join(folder, file), 'utf8')).map((document) => document.toJS()))
    .map((object: GoldenObject['object']) => {
      const kind = allKinds.find((k) => k.kind === object.kind && apiVersionOf(k) === object.apiVersion);
      if (!kind) throw new TypeError(`no schema for ${object.apiVersion} ${object.kind}`);
      return { kind, object };
    });
}
