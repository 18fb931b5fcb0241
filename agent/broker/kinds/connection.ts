/** Connection: the state of the link, written by the node of the gateway. */
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { unknownLatency } from '#shared/schema/protocol/observed-data.ts';
import { isOfGateway } from './derived.ts';
import { type BrokerKind, type Json, watched } from './kind.ts';
import { pick } from './manifest.ts';

export const connection: BrokerKind<'Connection'> = {
  type: networkKinds.connections,
  caches: watched(networkKinds.connections),
  isDerived: isOfGateway,
  observed: ({ status }) => ({
    ...pick(status, 'value', 'mtu', 'peerEndpoint', 'lastHandshakeTime', 'packetLoss', 'receivedBytes', 'sentBytes'),
    latency: (status?.latency as Json | undefined)?.value,
  }),
  volatile: {
    latency: (latency) => latency !== undefined && latency !== unknownLatency,
    lastHandshakeTime: () => undefined,
    packetLoss: () => undefined,
    receivedBytes: () => undefined,
    sentBytes: () => undefined,
  },
  takedown: { consumer: 'link', provider: 'link' },
  removedBy: 'agent',
};
