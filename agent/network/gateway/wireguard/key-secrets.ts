/** The Secret with a gateway's keys: the one that is named, or one of our own with fresh keys. */
import { createWireGuardKeys } from '#agent/pki/wireguard-keys.ts';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import { ownership } from '#kube/writes/owned-object.ts';
import { deleteObject } from '#kube/writes/write-if-changed.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Trouble } from './endpoint.ts';
import { faultOfKeys } from './keys.ts';
import { buildGatewaySecret, type GatewayIdentity } from './objects.ts';

interface KeySecret {
  /** Undefined: not there. */
  readonly name: string | undefined;
  /** Why it cannot be used. */
  readonly trouble?: Trouble;
}

export interface KeySecrets {
  ensure(identity: GatewayIdentity, named: string | undefined, signal: AbortSignal): Promise<KeySecret>;
}

export function createKeySecrets(api: KubeApi, cache: Cache<Secret>): KeySecrets {
  /** The cache holds labelled ones; a Secret that a user named need not be. */
  const find = async (namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined> =>
    cache.get({ namespace, name }) ?? api.get(secrets, { namespace, name }, signal);

  const checked = (secret: Secret): KeySecret => {
    const fault = faultOfKeys(secret);
    const { name } = secret.metadata;
    return fault === undefined ? { name } : { name, trouble: { reason: 'SecretMalformed', message: fault } };
  };

  const waitingFor = (name: string): KeySecret => ({
    name: undefined,
    trouble: { reason: 'SecretMissing', message: `waiting for Secret ${name}, which has another owner` },
  });

  async function own(identity: GatewayIdentity, signal: AbortSignal): Promise<KeySecret> {
    const name = networkName.gateway(identity.name);
    const found = await find(identity.namespace, name, signal);
    if (found !== undefined) {
      const relation = ownership(found, identity.owner);
      const isBroken = faultOfKeys(found) !== undefined;
      // Goes with its owner; keys that are about to go must not be told to the peer.
      if (relation === 'foreign' && found.metadata.ownerReferences?.length) return waitingFor(name);
      if (relation !== 'earlier' && !(relation === 'ours' && isBroken)) return checked(found);
      await deleteObject(api, secrets, found, signal);
    }
    try {
      await api.create(secrets, buildGatewaySecret(identity, createWireGuardKeys()), {}, signal);
    } catch (error) {
      // Made a moment ago, or still going: its event brings us back.
      if (codeOf(error) !== 'kube_already_exists') throw error;
      return waitingFor(name);
    }
    return { name };
  }

  return {
    async ensure(identity, named, signal) {
      if (named === undefined || named === '') return own(identity, signal);
      const found = await find(identity.namespace, named, signal);
      if (found !== undefined) return checked(found);
      const message = `spec.secretRef names Secret ${identity.namespace}/${named}, which does not exist; create it with privateKey and publicKey`;
      return { name: undefined, trouble: { reason: 'SecretMissing', message } };
    },
  };
}
