/** Tells on each Connection what to look at when no handshake comes; its other status is written by the node process beside the gateway. */
import { peerOf } from '#agent/model/peering-selections.ts';
import type { Cache, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { type Condition, findCondition, setCondition } from '#kube/writes/conditions.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { type KubeObject, keyOf, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import { settled } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { NetworkDeps } from '../../model/deps.ts';
import { handshakeAdvice, handshakeCondition, isInTrouble } from './decide.ts';

type Gateway = GatewayServer | GatewayClient;

export function createConnectionController({ cluster, clock, log }: NetworkDeps): Controller {
  const { api, caches } = cluster;
  const connections = caches.cache(networkKinds.connections);
  const publicKeys = caches.cache(networkKinds.publicKeys);
  const gateways = [
    caches.cache(networkKinds.gatewayServers),
    caches.cache(networkKinds.gatewayClients),
  ] as unknown as readonly Cache<Gateway>[];

  const sameLink = (a: KubeObject, b: KubeObject): boolean =>
    a.metadata.namespace === b.metadata.namespace && peerOf(a) === peerOf(b);
  const gatewayOf = (connection: Connection): Gateway | undefined =>
    gateways
      .flatMap((cache) => cache.list())
      .find((one) => sameLink(one, connection) && networkName.gateway(one.metadata.name) === connection.metadata.name);

  async function ownKeyOf(gateway: Gateway | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { namespace = '', name = '' } = gateway?.status?.secretRef ?? {};
    return name === '' ? undefined : (await api.get(secrets, { namespace, name }, signal))?.data?.publicKey;
  }

  async function write(connection: Connection, signal: AbortSignal): Promise<void> {
    const known = connection.status?.conditions as readonly Condition[] | undefined;
    if (!isInTrouble(connection)) {
      if (findCondition(known, handshakeCondition) === undefined) return;
      await patch(connection, null, signal);
      return;
    }
    const gateway = gatewayOf(connection);
    const advice = handshakeAdvice({
      connection,
      peer: peerOf(connection) ?? 'the peer',
      gateway,
      publicKey: publicKeys.list().find((one) => sameLink(one, connection)),
      ownKey: await ownKeyOf(gateway, signal),
    });
    if (advice === undefined) return;
    const wanted = setCondition(known, advice, clock.now());
    if (wanted !== known) await patch(connection, wanted, signal);
  }

  async function patch(connection: Connection, conditions: unknown, signal: AbortSignal): Promise<void> {
    const type = networkKinds.connections;
    try {
      await api.mergePatch(type, refOf(connection), { status: { conditions } }, { subresource: 'status' }, signal);
    } catch (error) {
      if (codeOf(error) !== 'kube_not_found') throw error;
    }
  }

  const troubled = (object: KubeObject): string[] =>
    connections
      .list()
      .filter((one) => isInTrouble(one) && sameLink(one, object))
      .map(keyOf);
  return createController(
    {
      name: 'connection',
      watches: [
        watch(connections, (connection) => [keyOf(connection)]),
        watch(publicKeys, troubled),
        ...gateways.map((cache) => watch(cache, troubled)),
      ],
      async reconcile(key, signal) {
        const connection = connections.get(refOfKey(key));
        if (connection !== undefined && connection.metadata.deletionTimestamp === undefined)
          await write(connection, signal);
        return settled;
      },
    },
    { clock, log },
  );
}
