/** Kubeconfigs that we write, read by what reads kubeconfigs. */
import { KubeConfig } from '@kubernetes/client-node';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toBase64 } from '#agent/pki/pem.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
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
