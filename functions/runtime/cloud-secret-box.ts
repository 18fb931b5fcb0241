/** For functions that seal or open secrets: the keyring in Secrets Manager, read once per container. */
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { createKeyringBox } from '#control/adapters/keyring/keyring-box.ts';
import type { SecretBox } from '#control/ports/secret-box.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { clientSettings } from './client-settings.ts';
import type { PartDeps } from './cloud.ts';

export function keyringBox({ env }: PartDeps): SecretBox {
  const client = new SecretsManagerClient(clientSettings);
  return createKeyringBox({
    clock: systemClock,
    async read(abortSignal) {
      const { SecretString } = await client.send(
        new GetSecretValueCommand({ SecretId: env.BOX_SECRET }),
        abortSignal === undefined ? {} : { abortSignal },
      );
      return SecretString ?? '';
    },
  });
}
