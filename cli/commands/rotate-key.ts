/** isthmus rotate-key: gives a cluster a new key pair, while everything that the former one holds open stays open. */
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { Command } from 'commander';
import { openCluster } from '#cli/cluster/open.ts';
import { fingerprintOf } from '#cli/install/own-key.ts';
import type { CliIo } from '#cli/output/io.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { keySuccessionText } from '#shared/domain/key-succession.ts';
import { authenticationKeysSecret, keyFields, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { changingKubeconfigOption, contextOption } from './kubeconfig-option.ts';

interface Options {
  readonly kubeconfig: string;
  readonly context?: string;
}

export const rotateKeyCommand = (io: CliIo): Command =>
  new Command('rotate-key')
    .addOption(changingKubeconfigOption())
    .addOption(contextOption())
    .addHelpText(
      'after',
      `
Each provider certifies the new key, because the former one signs it; until then the certificates of the former one are used. The Secret
${systemNamespace}/${authenticationKeysSecret} holds both meanwhile. A second rotation is refused until the first has ended.`,
    )
    .action((options: Options) => rotateKey(io, options));

const inPem = () => {
  const pair = generateKeyPairSync('ed25519');
  return {
    privateKey: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: pair.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    der: pair.publicKey.export({ type: 'spki', format: 'der' }),
  };
};
/** base64: the former key says that the next one is the cluster's, too. */
function successionOf(former: string, next: Uint8Array): string {
  const text = Buffer.from(keySuccessionText(fingerprintOf(next)));
  const key = createPrivateKey(former);
  return sign(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', text, key).toString('base64');
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

async function rotateKey(io: CliIo, options: Options): Promise<void> {
  const kube = await openCluster(options, io);
  const ref = { namespace: systemNamespace, name: authenticationKeysSecret };
  const secret = await kube.get(secrets, ref);
  const { privateKey, publicKey, [keyFields.previousPrivate]: unfinished } = secret?.data ?? {};
  if (secret === undefined || privateKey === undefined || publicKey === undefined) {
    throw new AppError('not_found', `this cluster has no key pair: Secret ${systemNamespace}/${ref.name} is absent`, {
      detail: { remedy: 'install Isthmus first; its agent makes the pair' },
    });
  }
  const held = await kube.list(identities);
  if (unfinished !== undefined) {
    const peers = [...new Set(held.map(({ spec }) => spec.clusterID))].sort().join(', ');
    throw new AppError('in_use', `the last rotation has not ended: certificates of the former key are still in use`, {
      detail: {
        remedy: `providers of this cluster: ${peers || 'none'}; without a broker, hand them the new key with \`liqoctl authenticate\``,
      },
    });
  }
  const next = inPem();
  await kube.mergePatch(secrets, ref, {
    metadata: { resourceVersion: secret.metadata.resourceVersion },
    data: {
      privateKey: base64(next.privateKey),
      publicKey: base64(next.publicKey),
      [keyFields.previousPrivate]: privateKey,
      [keyFields.previousPublic]: publicKey,
      [keyFields.succession]: successionOf(Buffer.from(privateKey, 'base64').toString(), next.der),
    },
  });
  io.stdout.write('the cluster has a new key; its providers are asked to certify it\n');
  const link = await kube.get(brokerLinks, { name: 'broker' });
  if (link !== undefined) {
    io.stderr.write(
      `make it known to the broker, too: isthmus join ${link.spec.clusterId} --kubeconfig ${options.kubeconfig}\n`,
    );
  }
}
