import { expect, test } from 'vitest';
import * as yaml from 'yaml';
import * as z from 'zod';
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

/** As krew's validation of manifests has it: these fields, and only these systems and processors in selectors. */
const KrewPlugin = z.strictObject({
  apiVersion: z.literal('krew.googlecontainertools.github.com/v1alpha2'),
  kind: z.literal('Plugin'),
  metadata: z.strictObject({ name: z.literal('isthmus') }),
  spec: z.strictObject({
    version: z.string().regex(/^v\d+\.\d+\.\d+$/),
    homepage: z.url(),
    shortDescription: z.string().regex(/^[^\r\n]{1,50}$/),
    description: z.string(),
    caveats: z.string(),
    platforms: z
      .array(
        z.strictObject({
          selector: z.strictObject({
            matchExpressions: z
              .array(
                z.strictObject({
                  key: z.enum(['os', 'arch']),
                  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
                  values: z.array(z.enum(['linux', 'darwin', 'windows', 'amd64', 'arm64'])),
                }),
              )
              .min(1),
          }),
          uri: z.url(),
          sha256: z.string().regex(/^[a-f0-9]{64}$/),
          bin: z.string().min(1),
          files: z.array(z.strictObject({ from: z.string().min(1), to: z.string().min(1) })).min(1),
        }),
      )
      .min(1),
  }),
});

test('the manifest for krew is one by the rules of krew', () => {
  KrewPlugin.parse(yaml.parse(krewManifest(about, artefact)));
});

test('the manifest for krew names the archive by its checksum, for the systems that run a script of Node', () => {
  const manifest = yaml.parse(krewManifest(about, artefact));
  expect(manifest.spec.version).toBe('v1.2.3');
  expect(manifest.spec.platforms).toEqual([
    expect.objectContaining({ uri: artefact.url, sha256: artefact.sha256, bin: 'kubectl-isthmus' }),
  ]);
});
