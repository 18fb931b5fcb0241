/** The key pair of the cluster in its Secret: created once, by the first component that needs it. */
import { generateClusterKeys, type OwnKeys } from '#agent/pki/cluster-keys.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { authenticationKeysSecret, keyFields, label } from '#shared/domain/liqo-keys.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';

/** Undefined when the Secret is absent. Refuses one that lacks a half: a new pair would silently make every peer a stranger. */
export function readKeys(secret: Secret | undefined): OwnKeys | undefined {
  if (secret === undefined) return undefined;
  const { privateKey, publicKey } = secret.data ?? {};
  if (privateKey === undefined || publicKey === undefined) {
    throw new AppError(
      'invalid_input',
      `Secret ${authenticationKeysSecret} lacks data.${privateKey === undefined ? 'privateKey' : 'publicKey'}; restore it, or delete the Secret to become a new cluster to every peer`,
    );
  }
  const former = secret.data?.[keyFields.previousPrivate];
  const formerPublic = secret.data?.[keyFields.previousPublic];
  return {
    privateKey: fromBase64(privateKey),
    publicKey: fromBase64(publicKey),
    ...(former !== undefined && formerPublic !== undefined
      ? { previous: { privateKey: fromBase64(former), publicKey: fromBase64(formerPublic) } }
      : {}),
    ...(secret.data?.[keyFields.succession] === undefined ? {} : { succession: secret.data[keyFields.succession] }),
  };
}

/** Safe against others doing the same at the same time: all get the pair that was stored first. */
export async function ensureClusterKeys(api: KubeApi, namespace: string, signal?: AbortSignal): Promise<OwnKeys> {
  const ref = { namespace, name: authenticationKeysSecret };
  const existing = readKeys(await api.get(secrets, ref, signal));
  if (existing !== undefined) return existing;
  const keys = generateClusterKeys();
  try {
    await api.create(
      secrets,
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { ...ref, labels: { [label.managed]: 'true' } },
        type: 'Opaque',
        data: { privateKey: toBase64(keys.privateKey), publicKey: toBase64(keys.publicKey) },
      },
      {},
      signal,
    );
    return keys;
  } catch (error) {
    if (codeOf(error) !== 'kube_already_exists') throw error;
    const other = readKeys(await api.get(secrets, ref, signal));
    if (other === undefined) throw error;
    return other;
  }
}
