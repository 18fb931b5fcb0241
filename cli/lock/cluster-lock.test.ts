/** How many lock keys may sign one cluster. */
import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import type { KubeClient } from '#cli/cluster/open.ts';
import { ownKeyOf } from '#cli/install/own-key.ts';
import { type PeeringLock, peeringLocks } from '#shared/schema/isthmus/peering-lock.ts';
import { signCluster } from './cluster-lock.ts';

const pem = generateKeyPairSync('ed25519');
const text = (key: { export(options: object): string | Buffer }, type: string) =>
  Buffer.from(key.export({ type, format: 'pem' })).toString('base64');
const pair = { privateKey: text(pem.privateKey, 'pkcs8'), publicKey: text(pem.publicKey, 'spki') };

test('a ninth lock key is refused before it is written, with the way out, and one of the eight still signs', async () => {
  let lock: PeeringLock | undefined;
  const kube = {
    get: async (type: { kind: string }) => (type.kind === peeringLocks.kind ? lock : { data: pair }),
    apply: async (_type: unknown, object: PeeringLock) => {
      lock = object;
    },
  } as unknown as KubeClient;
  const sign = (publicKey: string) =>
    signCluster(kube, {
      tenant: 'acme',
      clusterId: 'rome',
      lock: { publicKey, sign: () => 'c2ln' },
      holder: 'ci',
      at: 1,
    });
  for (let at = 1; at <= 8; at += 1) await sign(`key-${at}`);
  await expect(sign('key-9')).rejects.toMatchObject({
    code: 'invalid_input',
    detail: { remedy: expect.stringContaining('isthmus lock distrust') },
  });
  expect(lock?.spec.own?.signatures).toHaveLength(8);
  expect(lock?.spec.keys).toHaveLength(8);
  expect(await sign('key-3')).toBe((await ownKeyOf(kube))?.fingerprint);
});
