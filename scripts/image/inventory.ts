/** What an image is made of: the SBOM of each architecture (CycloneDX 1.6) and the provenance (SLSA 1). Both without times: the same sources, the same bytes. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { DebianPackageFiles } from '#scripts/setup/debian-tree.ts';
import type { BundledPackage } from './bundle.ts';
import type { Architecture } from './oci.ts';

interface GoModule {
  readonly path: string;
  readonly version: string;
}

export interface Parts {
  readonly version: string;
  readonly nodeVersion: string;
  readonly bundled: readonly BundledPackage[];
  readonly goModules: readonly GoModule[];
  readonly debian: readonly DebianPackageFiles[];
}

export interface Sbom {
  readonly bomFormat: 'CycloneDX';
  readonly specVersion: '1.6';
  readonly version: 1;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
}

interface Component {
  readonly type: 'application' | 'library' | 'container';
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses?: readonly { readonly expression: string }[];
}

const component = (
  type: Component['type'],
  name: string,
  version: string,
  purl: string,
  license?: string,
): Component => ({
  type,
  'bom-ref': purl,
  name,
  version,
  purl,
  ...(license !== undefined && { licenses: [{ expression: license }] }),
});

const npmPurl = (name: string, version: string): string => `pkg:npm/${name.replace(/^@/, '%40')}@${version}`;
const debianPurl = ({ name, version }: DebianPackageFiles, architecture: Architecture): string =>
  `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;

export function sbomOf(architecture: Architecture, parts: Parts): Sbom {
  const { version, nodeVersion, bundled, goModules, debian } = parts;
  const image = component(
    'container',
    'isthmus-agent',
    version,
    `pkg:oci/agent?arch=${architecture}&tag=${version}`,
    'Apache-2.0',
  );
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: image },
    components: [
      component('application', 'node', nodeVersion, `pkg:generic/node@${nodeVersion}`, 'MIT'),
      ...bundled.map((each) =>
        component('library', each.name, each.version, npmPurl(each.name, each.version), each.license),
      ),
      ...goModules.map((each) =>
        component('library', each.path, each.version, `pkg:golang/${each.path}@${each.version}`),
      ),
      ...debian.map((each) => component('library', each.name, each.version, debianPurl(each, architecture))),
    ],
  };
}

export interface Source {
  /** Undefined: no git repository. */
  readonly commit?: string;
  /** Changed or untracked files besides the commit. */
  readonly dirty: boolean;
}

interface Material {
  readonly uri: string;
  readonly digest?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

export interface ProvenanceOf {
  readonly source: Source;
  readonly compression: string;
  readonly sboms: Readonly<Partial<Record<Architecture, Sbom>>>;
  /** Contents of lock files by their path in the repository. */
  readonly locks: Readonly<Record<string, Uint8Array>>;
}

/** The predicate of https://slsa.dev/provenance/v1. */
export function provenanceOf({ source, compression, sboms, locks }: ProvenanceOf): Record<string, unknown> {
  const purls = new Set(Object.values(sboms).flatMap(({ components }) => components.map(({ purl }) => purl)));
  const materials: readonly Material[] = [
    {
      uri: 'git+isthmus',
      ...(source.commit !== undefined && { digest: { gitCommit: source.commit } }),
      annotations: { changedBesidesCommit: source.dirty },
    },
    ...Object.entries(locks).map(([file, content]) => ({
      uri: `file:${file}`,
      digest: { sha256: createHash('sha256').update(content).digest('hex') },
    })),
    ...[...purls].sort().map((uri) => ({ uri })),
  ];
  return {
    buildDefinition: {
      buildType: 'https://isthmus.dev/build/npm-run-image/v1',
      externalParameters: { architectures: Object.keys(sboms), compression },
      resolvedDependencies: materials,
    },
    runDetails: { builder: { id: 'https://isthmus.dev/build/npm-run-image' } },
  };
}

interface Documents {
  readonly sboms: Readonly<Partial<Record<Architecture, Sbom>>>;
  readonly provenance: Readonly<Record<string, unknown>>;
}

/** Writes the SBOM of each architecture and the provenance into a folder. */
export function writeDocuments(folder: string, { sboms, provenance }: Documents): void {
  mkdirSync(folder, { recursive: true });
  const write = (name: string, value: unknown): void =>
    writeFileSync(path.join(folder, name), `${JSON.stringify(value, null, 2)}\n`);
  for (const [architecture, sbom] of Object.entries(sboms)) write(`agent-${architecture}.cdx.json`, sbom);
  write('agent.provenance.json', provenance);
}
