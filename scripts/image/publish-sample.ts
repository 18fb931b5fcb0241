/** A small image of two architectures with all that is published about it, for tests of registries. */
import { writeFileSync } from 'node:fs';
import type { AgentImage } from './agent-image.ts';
import { uncompressed } from './compression.ts';
import { provenanceOf, sbomOf } from './inventory.ts';
import { type Architecture, buildImage, imageTar } from './oci.ts';

export async function sampleImage(tarPath: string, text = 'hello'): Promise<AgentImage> {
  const content = Buffer.from(text);
  const of = (architecture: Architecture) => {
    const files = [{ path: `/etc/${architecture}`, mode: 0o644, content }];
    return buildImage({ architecture, layers: [files], config: {}, compression: uncompressed });
  };
  const { tar, digest } = imageTar('isthmus.test/sample:1', [await of('amd64'), await of('arm64')]);
  writeFileSync(tarPath, tar);
  const parts = { version: '1.0.0', nodeVersion: '24.0.0', bundled: [], goModules: [], debian: [] };
  const sboms = { amd64: sbomOf('amd64', parts), arm64: sbomOf('arm64', parts) };
  const provenance = provenanceOf({ source: { dirty: false }, compression: 'none', sboms, locks: {} });
  return { reference: 'isthmus.test/sample:1', tarPath, digest, sizes: {}, compressedBytes: 0, sboms, provenance };
}
