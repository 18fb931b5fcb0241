/** cosign itself on what `npm run image -- --push REF --key FILE` writes. In `npm test`, publish.real.test.ts verifies the same with node:crypto. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must, run } from '#test/harness/program.ts';
import { buildCosign, startRegistry, type TestRegistry } from '#test/harness/registry.ts';
import { publish } from './publish.ts';
import { sampleImage } from './publish-sample.ts';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-cosign-'));
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
let server: TestRegistry;
let cosign: string;
let image: string;
beforeAll(async () => {
  cosign = await buildCosign({ log: (line) => console.error(line) });
  server = await startRegistry();
  writeFileSync(path.join(scratch, 'key.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
  const built = await sampleImage(path.join(scratch, 'image.tar'));
  const target = { registry: server.host, repository: 'team/agent', tag: '1' };
  await publish(built, {
    target,
    plainHttp: true,
    configFile: server.configFile,
    key: privateKey,
    log: () => undefined,
  });
  image = `${server.host}/team/agent@${built.digest}`;
}, 1_800_000);
afterAll(async () => {
  await server?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

/** Without a transparency log: it is a service on the Internet. */
const flags = ['--insecure-ignore-tlog=true', '--allow-http-registry'];
const env = () => ({ DOCKER_CONFIG: path.dirname(server.configFile), HOME: scratch });

test('cosign verifies the signature by the public key, and by no other', async () => {
  const args = ['verify', ...flags, '--key', path.join(scratch, 'key.pub'), image];
  expect((await must(cosign, args, { env: env() })).stdout).toContain('cosign container image signature');
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' });
  writeFileSync(path.join(scratch, 'other.pub'), other);
  const refused = await run(cosign, ['verify', ...flags, '--key', path.join(scratch, 'other.pub'), image], {
    env: env(),
  });
  expect(refused.code).not.toBe(0);
});

test.each(['cyclonedx', 'slsaprovenance1'])('cosign verifies the attestation %s', async (type) => {
  const args = ['verify-attestation', ...flags, '--type', type, '--key', path.join(scratch, 'key.pub'), image];
  expect((await must(cosign, args, { env: env() })).stdout).toContain('application/vnd.in-toto+json');
});
