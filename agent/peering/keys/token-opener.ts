/** Opens the tokens in our kubeconfigs with the key pair as it is at that moment: it changes with a rotation, and connections are opened rarely. */
import { isAccount } from '#agent/model/peer-accounts.ts';
import { openSealedToken } from '#agent/pki/sealed-token.ts';
import type { KubeconfigOptions } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { authenticationKeysSecret } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { readKeys } from './ensure-keys.ts';

export const tokenOpener =
  (api: Pick<KubeApi, 'get'>, systemNamespace: string): NonNullable<KubeconfigOptions['openToken']> =>
  async ({ sealed, account }) => {
    const own = readKeys(await api.get(secrets, { namespace: systemNamespace, name: authenticationKeysSecret }));
    if (own === undefined)
      throw new AppError(
        'invalid_input',
        `Secret ${systemNamespace}/${authenticationKeysSecret} is missing: without the key pair of this cluster no token can be opened`,
      );
    return openSealedToken(sealed, own, { isFor: (user) => isAccount(user, account) });
  };
