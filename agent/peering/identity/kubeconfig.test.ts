/** Kubeconfigs that we write, read by what reads kubeconfigs. */
import { createPublicKey } from 'node:crypto';
import { KubeConfig } from '@kubernetes/client-node';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { credentialOf } from '#agent/model/peer-credentials.ts';
import { generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { readSealedToken, sealToken } from '#agent/pki/sealed-token.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import { credentialsEndMs } from '../foreign-cluster/credentials.ts';
import { buildKubeconfig } from './kubeconfig.ts';

const identity = (spec: Partial<Identity['spec']>): Identity => ({
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'Identity',
  metadata: { name: 'controlplane-milan', namespace: 'liqo-tenant-milan' },
  spec: { clusterID: 'milan', type: 'ControlPlane', authParams: {}, ...spec },
});

test('what is written is what client-node reads', () => {
  fc.assert(
    fc.property(
      fc.webUrl(),
      fc.string({ minLength: 1 }),
      fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/),
      (apiServer, pem, namespace) => {
        const authParams = { apiServer, ca: toBase64(pem), signedCRT: toBase64(pem) };
        const config = new KubeConfig();
        config.loadFromString(buildKubeconfig(identity({ authParams, namespace }), 'the key') ?? '');
        expect(config.getCurrentCluster()).toMatchObject({
          name: 'milan',
          server: apiServer.replace(/\/$/, ''),
          caData: toBase64(pem),
        });
        expect(config.getCurrentUser()).toMatchObject({
          name: 'controlplane-milan',
          certData: toBase64(pem),
          keyData: toBase64('the key'),
        });
        expect(config.getContextObject(config.getCurrentContext())?.namespace).toBe(namespace);
      },
    ),
  );
});

test('none without a certificate, and a refusal of what we cannot use', () => {
  expect(buildKubeconfig(identity({ authParams: { apiServer: 'https://x' } }), 'k')).toBeUndefined();
  const awsConfig = {
    awsUserArn: '',
    awsAccessKeyID: '',
    awsSecretAccessKey: 's3cret',
    awsRegion: '',
    awsClusterName: '',
  };
  expect(() => buildKubeconfig(identity({ authParams: { awsConfig } }), 'k')).toThrow(
    /awsConfig .* accepted is a certificate/,
  );
});

test('a token stays sealed in it, with the account that it has to be of', async () => {
  const keys = generateClusterKeys();
  const sealedToken = await sealToken('secret', createPublicKey(keys.publicKey), Date.now() + 1_000);
  const params = { apiServer: 'https://192.0.2.1:6443', sealedToken };
  const kubeconfig = buildKubeconfig(identity({ authParams: params, namespace: 'liqo-tenant-rome' }), 'the key') ?? '';
  expect(kubeconfig).not.toContain('the key');
  expect(credentialsEndMs(kubeconfig)).toBe(readSealedToken(sealedToken)?.endMs);
  const asked: unknown[] = [];
  const openToken = async (...all: unknown[]) => {
    asked.push(...all);
    return 'opened';
  };
  const connection = await connectKubeconfig(kubeconfig, { isFromCluster: true, openToken });
  expect(connection.headers()).toEqual({ authorization: 'Bearer opened' });
  const account = 'system:serviceaccount:liqo-tenant-rome:isthmus-peer';
  expect(asked).toEqual([{ sealed: sealedToken, account }, 'milan']);
  await expect(connectKubeconfig(kubeconfig)).rejects.toThrow(/only the agent of the cluster can open/);
  expect(() => buildKubeconfig(identity({ authParams: params }), 'k')).toThrow(/spec.namespace is missing/);
});

test('of a certificate and a token, the one that ends later is used', async () => {
  const { publicKey } = generateClusterKeys();
  const sealedToken = await sealToken('secret', createPublicKey(publicKey), Date.now() + 1_000);
  const unreadable = toBase64('no certificate');
  const params = { apiServer: 'https://x', sealedToken, signedCRT: unreadable };
  expect(buildKubeconfig(identity({ authParams: params, namespace: 'n' }), 'k')).toContain(sealedToken);
  expect(credentialOf({ signedCRT: unreadable })).toMatchObject({ kind: 'certificate', endMs: undefined });
  expect(credentialOf({})).toBeUndefined();
});
