/** Images, signatures and attestations in a real registry that asks for a password. */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { registryLogin, startRegistry, type TestRegistry } from '#test/harness/registry.ts';
import { type Descriptor, mediaTypes } from './oci.ts';
import { publish } from './publish.ts';
import { sampleImage } from './publish-sample.ts';
import { openRegistry, type Registry } from './registry.ts';
import { preAuthentication } from './signature.ts';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-publish-'));
let server: TestRegistry;
beforeAll(async () => {
  server = await startRegistry();
}, 900_000);
afterAll(async () => {
  await server?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

const target = (repository: string) => ({ registry: server.host, repository, tag: '1' });
const asPorter = (repository: string): Registry =>
  openRegistry({ registry: server.host, repository, plainHttp: true, credentials: registryLogin });
const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const publisher = (repository: string, more: object = {}) => {
  const lines: string[] = [];
  const log = (line: string): void => void lines.push(line);
  const options = { target: target(repository), plainHttp: true, configFile: server.configFile, log, ...more };
  return { options, lines };
};
const layersOf = async (registry: Registry, tag: string): Promise<readonly Descriptor[]> => {
  const text = await registry.getManifest(tag, mediaTypes.manifest);
  return (JSON.parse(String(text)) as { layers: readonly Descriptor[] }).layers;
};

describe('an image in a registry', () => {
  test('is there under its tag with the digest of the saved tar, and a second push sends nothing', async () => {
    const image = await sampleImage(path.join(scratch, 'plain.tar'));
    const { options } = publisher('team/plain');
    const first = await publish(image, options);
    expect(first.digest).toBe(image.digest);
    expect(first.sent).toBe(4);
    expect(await publish(image, options)).toEqual({ digest: image.digest, sent: 0, sentBytes: 0 });
    const answer = await asPorter('team/plain').getManifest(image.digest, mediaTypes.index);
    expect(answer && (JSON.parse(answer.toString()) as { manifests: unknown[] }).manifests).toHaveLength(2);
  });

  test('carries the signatures of two keys, which verify, and one of each when it is signed again', async () => {
    const image = await sampleImage(path.join(scratch, 'signed.tar'));
    const [one, two] = [keyPair(), keyPair()];
    for (const { privateKey } of [one, two, one])
      await publish(image, publisher('team/signed', { key: privateKey }).options);
    const registry = asPorter('team/signed');
    const tag = `${image.digest.replace(':', '-')}.sig`;
    const layers = await layersOf(registry, tag);
    expect(layers).toHaveLength(2);
    for (const { privateKey } of [one, two]) {
      const valid = await Promise.all(
        layers.map(async ({ digest, annotations }) => {
          const signature = Buffer.from(annotations?.['dev.cosignproject.cosign/signature'] ?? '', 'base64');
          const payload = await registry.getBlob(digest);
          expect(JSON.parse(payload.toString()).critical.image).toEqual({ 'docker-manifest-digest': image.digest });
          return verify('sha256', payload, createPublicKey(privateKey), signature);
        }),
      );
      expect(valid.filter((each) => each)).toHaveLength(1);
    }
  });

  test('carries the SBOM of each architecture and the provenance, signed', async () => {
    const image = await sampleImage(path.join(scratch, 'attested.tar'));
    const { privateKey, publicKey } = keyPair();
    await publish(image, publisher('team/attested', { key: privateKey }).options);
    const registry = asPorter('team/attested');
    const layers = await layersOf(registry, `${image.digest.replace(':', '-')}.att`);
    const said = await Promise.all(
      layers.map(async ({ digest }) => {
        const envelope = JSON.parse((await registry.getBlob(digest)).toString());
        const payload = Buffer.from(envelope.payload, 'base64');
        const signature = Buffer.from(envelope.signatures[0].sig, 'base64');
        expect(verify('sha256', preAuthentication(payload), publicKey, signature)).toBe(true);
        return JSON.parse(payload.toString());
      }),
    );
    for (const { subject } of said) expect(subject[0].digest.sha256).toBe(image.digest.slice(7));
    expect(said.map(({ predicate }) => predicate)).toEqual([image.sboms.amd64, image.sboms.arm64, image.provenance]);
  });
});

describe('a push that is refused', () => {
  test('without credentials says how to log in', async () => {
    const image = await sampleImage(path.join(scratch, 'refused.tar'));
    const { options } = publisher('team/none', { configFile: path.join(scratch, 'absent.json') });
    await expect(publish(image, options)).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringContaining(`docker login ${server.host}`),
    });
  });

  test('with a wrong password names neither the password nor what is sent of it', async () => {
    const image = await sampleImage(path.join(scratch, 'wrong.tar'));
    const configFile = path.join(scratch, 'wrong.json');
    const auth = Buffer.from('porter:tell nobody').toString('base64');
    writeFileSync(configFile, JSON.stringify({ auths: { [server.host]: { auth } } }));
    const { options, lines } = publisher('team/wrong', { configFile });
    const failure = await publish(image, options).catch((error: unknown) => error as Error & { code: string });
    expect(failure).toMatchObject({ code: 'unauthenticated' });
    const printed = `${lines.join('\n')}${String((failure as Error).stack)}`;
    for (const secret of ['tell nobody', auth]) expect(printed).not.toContain(secret);
  });

  test('of a tar that was damaged happens before the tag is set', async () => {
    const tarPath = path.join(scratch, 'damaged.tar');
    const image = await sampleImage(tarPath, 'a text to be found');
    const bytes = readFileSync(tarPath);
    bytes.write('A', bytes.indexOf('a text to be found'));
    writeFileSync(tarPath, bytes);
    await expect(publish(image, publisher('team/damaged').options)).rejects.toThrow('no intact blob');
    expect(await asPorter('team/damaged').getManifest('1', mediaTypes.index)).toBeUndefined();
  });

  test('by TLS does not fall back to plain HTTP', async () => {
    const image = await sampleImage(path.join(scratch, 'tls.tar'));
    const registry = openRegistry({ registry: server.host, repository: 'team/tls', plainHttp: false, patienceMs: 1 });
    await expect(registry.hasBlob(image.digest)).rejects.toThrow(/HEAD .* failed/);
  });
});
