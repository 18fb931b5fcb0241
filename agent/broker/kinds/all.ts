/** Every kind of object that crosses the border between broker and cluster, in either direction. Nothing else does. */
import type { ObservedKind } from '#shared/schema/protocol/observed-data.ts';
import { configuration } from './configuration.ts';
import { connection } from './connection.ts';
import { gatewayClient } from './gateway-client.ts';
import { gatewayServer } from './gateway-server.ts';
import { identity } from './identity.ts';
import type { BrokerKind } from './kind.ts';
import { namespace } from './namespace.ts';
import { namespaceMap } from './namespace-map.ts';
import { node } from './node.ts';
import { publicKey } from './public-key.ts';
import { resourceSlice } from './resource-slice.ts';
import { secret } from './secret.ts';
import { tenant } from './tenant.ts';
import { virtualNode } from './virtual-node.ts';

const byName: { readonly [K in ObservedKind]: BrokerKind<K> } = {
  Namespace: namespace,
  Secret: secret,
  Tenant: tenant,
  Identity: identity,
  ResourceSlice: resourceSlice,
  NamespaceMap: namespaceMap,
  VirtualNode: virtualNode,
  Node: node,
  Configuration: configuration,
  GatewayServer: gatewayServer,
  GatewayClient: gatewayClient,
  PublicKey: publicKey,
  Connection: connection,
};

export const brokerKinds: readonly BrokerKind[] = Object.values(byName);
const index: ReadonlyMap<string, BrokerKind> = new Map(Object.entries(byName));

/** Undefined: no object of this kind crosses the border. */
export const brokerKind = (kind: string): BrokerKind | undefined => index.get(kind);
