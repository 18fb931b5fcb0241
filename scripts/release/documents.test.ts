import { expect, test } from 'vitest';
import * as yaml from 'yaml';
import { checksums, homebrewFormula, krewManifest, sha256 } from './documents.ts';

const about = { version: '1.2.3', description: 'Lends "capacity"', homepage: 'https://example.test/v1' };
const artefact = { url: 'https://example.test/v1/a.tgz', sha256: sha256(Buffer.from('a')) };

test('checksums are in the form of sha256sum, sorted by name', () => {
  expect(checksums({ b: Buffer.from('b'), a: Buffer.from('a') })).toBe(
    `${sha256(Buffer.from('a'))}  a\n${sha256(Buffer.from('b'))}  b\n`,
  );
});

test('the formula for Homebrew installs the tarball by its checksum, with its texts quoted', () => {
  const formula = homebrewFormula(about, artefact);
  expect(formula).toContain(`url "${artefact.url}"`);
  expect(formula).toContain(`sha256 "${artefact.sha256}"`);
  expect(formula).toContain('desc "Lends \\"capacity\\""');
});

test('the manifest for krew names the archive by its checksum, for the systems that run a script of Node', () => {
  const manifest = yaml.parse(krewManifest(about, artefact));
  expect(manifest.spec.version).toBe('v1.2.3');
  expect(manifest.spec.platforms).toEqual([
    expect.objectContaining({ uri: artefact.url, sha256: artefact.sha256, bin: 'kubectl-isthmus' }),
  ]);
});
