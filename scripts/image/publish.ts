/** Puts a built image into a registry, and, with a key, its signature, its SBOMs and its provenance beside it. */
import type { KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AgentImage } from './agent-image.ts';
import { manifestOf, type Pushed, pushLayout, readLayout } from './push.ts';
import type { Reference } from './reference.ts';
import { openRegistry } from './registry.ts';
import { credentialsFor } from './registry-credentials.ts';
import { pushAttestations, pushSignature, type Statement } from './signature.ts';

export interface PublishOptions {
  readonly target: Reference;
  readonly plainHttp: boolean;
  /** docker's `config.json`. */
  readonly configFile: string;
  readonly key?: KeyObject;
  readonly log: (line: string) => void;
}

const predicates = { sbom: 'https://cyclonedx.org/bom', provenance: 'https://slsa.dev/provenance/v1' } as const;

export async function publish(image: AgentImage, options: PublishOptions): Promise<Pushed> {
  const { target, plainHttp, configFile, key, log } = options;
  const { registry: host, repository, tag } = target;
  const credentials = await credentialsFor(host, configFile);
  const registry = openRegistry({ registry: host, repository, plainHttp, ...(credentials && { credentials }) });
  const layout = readLayout(readFileSync(image.tarPath));
  const pushed = await pushLayout(layout, registry, tag, log);
  if (key === undefined) return pushed;
  const name = `${host}/${repository}`;
  const { manifests = [] } = manifestOf(layout, layout.root);
  const platforms = manifests.length > 0 ? manifests : [layout.root];
  // Policies look at the index or at what a node runs of it: each has a signature.
  for (const { digest } of new Set([layout.root, ...platforms])) await pushSignature(registry, name, digest, key);
  const provenance: Statement = { predicateType: predicates.provenance, predicate: image.provenance };
  const all = Object.values(image.sboms).map((predicate): Statement => ({ predicateType: predicates.sbom, predicate }));
  await pushAttestations(registry, name, layout.root.digest, [...all, provenance], key);
  for (const { digest, platform } of manifests) {
    const sbom = platform && image.sboms[platform.architecture];
    if (sbom === undefined) continue;
    await pushAttestations(
      registry,
      name,
      digest,
      [{ predicateType: predicates.sbom, predicate: sbom }, provenance],
      key,
    );
  }
  return pushed;
}
