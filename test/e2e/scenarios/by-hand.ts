/** Peering with liqoctl's small commands, one by one, as people do where `peer` has not all the rights it needs. */
import { describe, expect, test } from 'vitest';
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import { configurations } from '#shared/schema/liqo/configuration.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  authenticate,
  createNonce,
  generateIdentity,
  generateTenant,
  getNonce,
  unauthenticate,
} from '../liqoctl/authenticate.ts';
import {
  createConfiguration,
  createGatewayClient,
  createGatewayServer,
  createPublicKey,
  deleteNamed,
  generateConfiguration,
  generatePublicKey,
} from '../liqoctl/create.ts';
import { infoPeer } from '../liqoctl/info.ts';
import { networkConnect, networkDisconnect, networkReset } from '../liqoctl/network.ts';
import { setTenantCondition } from '../liqoctl/peer.ts';
import { createWaits } from '../liqoctl/requests.ts';
import type { Stage } from '../stage.ts';

export function byHand(on: () => Stage): void {
  const [rome, milan] = [() => on().rome, () => on().milan];
  describe('liqoctl, one step after the other by hand,', () => {
    const [atRome, atMilan] = [
      { namespace: 'liqo-tenant-milan', peer: 'milan' },
      { namespace: 'liqo-tenant-rome', peer: 'rome' },
    ] as const;

    test('network connect, disconnect and reset end the link and keep, then drop, what is known of the peer', async () => {
      const flags = { serviceType: 'NodePort', port: 51_840, mtu: 1_340, wait: true } as const;
      await networkConnect(on().target(rome()), on().target(milan()), flags, createWaits(120_000, 100));
      await networkConnect(on().target(milan()), on().target(rome()), flags, createWaits(120_000, 100));
      expect((await infoPeer(on().target(rome()), 'milan')).network.gateway.both).toBe(1);
      await networkDisconnect(on().target(rome()), on().target(milan()));
      await eventually('no gateway, key and Connection', async () => {
        for (const { api } of [rome(), milan()])
          for (const type of [networkKinds.connections, networkKinds.publicKeys, networkKinds.gatewayServers])
            expect(await api.list(type as typeof networkKinds.connections)).toEqual([]);
        return true;
      });
      expect(await rome().api.list(configurations)).toHaveLength(1);
      await networkReset(on().target(rome()), on().target(milan()));
      await eventually('no Configuration', async () => (await rome().api.list(configurations)).length === 0);
    }, 120_000);

    test('create and generate: configuration, gatewayserver, gatewayclient, publickey; then delete', async () => {
      const waits = createWaits(120_000, 100);
      const [client, server] = [
        { namespace: atRome.namespace, name: 'by-hand' },
        { namespace: atMilan.namespace, name: 'by-hand' },
      ];
      const ofRome = await generateConfiguration(on().target(rome()), atMilan.namespace);
      await milan().api.create(configurations, ofRome);
      const { pod = [], external = [] } = (await generateConfiguration(on().target(milan()), atRome.namespace)).spec
        .remote.cidr;
      const cidr = { podCidr: pod[0] ?? '', externalCidr: external[0] ?? '' };
      const toMilan = { namespace: atRome.namespace, name: 'milan' };
      await createConfiguration(on().target(rome()), toMilan, 'milan', cidr, waits);
      const made = await createGatewayServer(
        on().target(milan()),
        server,
        'rome',
        { port: 51_840, nodePort: 30_742 },
        waits,
      );
      const { addresses = [], port = 0 } = made.status?.endpoint ?? {};
      expect(port).toBe(30_742);
      const endpoint = { addresses: [...addresses], port, protocol: 'UDP' as const };
      await createGatewayClient(on().target(rome()), client, 'milan', endpoint, waits);
      // The key comes after what `create` waits for; a person would ask again.
      const keyOf = (
        cluster: ReturnType<typeof rome>,
        gateway: ObjectRef,
        type: 'server' | 'client',
        namespace: string,
      ) =>
        eventually(`the key of ${gateway.name}`, () =>
          generatePublicKey(on().target(cluster), gateway, type, namespace),
        );
      await rome().api.create(networkKinds.publicKeys, await keyOf(milan(), server, 'server', atRome.namespace));
      const own = await keyOf(rome(), client, 'client', atMilan.namespace);
      const key = { namespace: atMilan.namespace, name: 'rome' };
      await createPublicKey(on().target(milan()), key, 'rome', own.spec.publicKey ?? '');
      await eventually('Connected', async () => {
        const found = [rome(), milan()].map(({ api }) => api.list(networkKinds.connections));
        return (await Promise.all(found)).flat().filter(({ status }) => status?.value === 'Connected').length === 2;
      });
      await deleteNamed(on().target(rome()), networkKinds.gatewayClients, client);
      await deleteNamed(on().target(rome()), networkKinds.publicKeys, { ...toMilan, name: 'milan' });
      await deleteNamed(on().target(rome()), configurations, toMilan);
      await deleteNamed(on().target(milan()), networkKinds.gatewayServers, server);
      await deleteNamed(on().target(milan()), networkKinds.publicKeys, key);
      await deleteNamed(on().target(milan()), configurations, { namespace: atMilan.namespace, name: 'rome' });
      await on().nothingShared();
    }, 120_000);

    test('create nonce, get nonce, generate tenant, generate identity are authenticate; unauthenticate ends it', async () => {
      const waits = createWaits(120_000, 100);
      const nonce = await createNonce(on().target(milan()), 'rome', waits);
      expect(await getNonce(on().target(milan()), 'rome')).toBe(nonce);
      const tenantFlags = { nonce, remoteNamespace: atMilan.namespace };
      await milan().api.create(tenants, await generateTenant(on().target(rome()), 'milan', tenantFlags, waits));
      await expect(
        generateTenant(on().target(rome()), 'milan', { ...tenantFlags, nonce: `${nonce}=` }, waits),
      ).rejects.toThrow('different value');
      const identity = await eventually('an identity', () =>
        generateIdentity(on().target(milan()), 'rome', atRome.namespace),
      );
      await rome().api.create(identities, identity);
      await waits.until('credentials', async () => {
        const { namespace = '', name } = identity.metadata;
        return (await rome().api.get(identities, { namespace, name }))?.status?.kubeconfigSecretRef?.name;
      });
      // All of it is there: authenticating changes nothing but what a person set on the Tenant.
      await setTenantCondition(on().target(milan()), 'rome', 'Cordoned', 'Active');
      await authenticate(on().target(rome()), on().target(milan()), waits);
      expect((await milan().api.list(tenants))[0]?.spec.tenantCondition).not.toBe('Cordoned');
      await unauthenticate(on().target(rome()), on().target(milan()));
      await on().nothingShared();
      await on().withoutNamespaces();
    }, 120_000);
  });
}
