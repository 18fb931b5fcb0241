import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { packagesOf } from './bundle.ts';
import { provenanceOf, sbomOf } from './inventory.ts';

const parts = {
  version: '0.1.0',
  nodeVersion: '24.0.0',
  bundled: [{ name: '@scope/a', version: '1.0.0', license: 'MIT' }],
  goModules: [{ path: 'golang.org/x/net', version: 'v0.1.0' }],
  debian: [{ name: 'libstdc++6', version: '3:12+b1', folder: '/' }],
};

describe('the SBOM', () => {
  const sbom = sbomOf('arm64', parts);

  test('names each part by a package URL that needs no more quoting', () => {
    expect(sbom.components.map(({ purl }) => purl)).toEqual([
      'pkg:generic/node@24.0.0',
      'pkg:npm/%40scope/a@1.0.0',
      'pkg:golang/golang.org/x/net@v0.1.0',
      'pkg:deb/debian/libstdc%2B%2B6@3%3A12%2Bb1?arch=arm64',
    ]);
  });

  test('has a reference of its own for each part', () => {
    const references = sbom.components.map((component) => component['bom-ref']);
    expect(new Set(references).size).toBe(references.length);
  });
});

test('the provenance names commit, lock files and parts, and says whether more than the commit went in', () => {
  const of = (dirty: boolean) =>
    provenanceOf({
      source: { commit: 'abc', dirty },
      compression: 'zstd',
      sboms: { amd64: sbomOf('amd64', parts) },
      locks: { 'package-lock.json': Buffer.from('x') },
    });
  expect(of(false)).toMatchObject({
    buildDefinition: {
      externalParameters: { architectures: ['amd64'], compression: 'zstd' },
      resolvedDependencies: expect.arrayContaining([
        { uri: 'git+isthmus', digest: { gitCommit: 'abc' }, annotations: { changedBesidesCommit: false } },
        { uri: 'file:package-lock.json', digest: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } },
        { uri: 'pkg:npm/%40scope/a@1.0.0' },
      ]),
    },
  });
  expect(of(true)).not.toEqual(of(false));
});

test('packages are found by the paths of their sources, each once', () => {
  const root = path.resolve(import.meta.dirname, '../..');
  const sources = [
    'agent/main.ts',
    'node_modules/zod/v4/a.js',
    'node_modules/zod/v4/b.js',
    'node_modules/ws/wrapper.mjs',
  ];
  expect(packagesOf(root, sources).map(({ name, license }) => [name, license])).toEqual([
    ['ws', 'MIT'],
    ['zod', 'MIT'],
  ]);
});
