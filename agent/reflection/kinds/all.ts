/** Every kind that goes from the consumer to the provider. */
import { configMap } from './config-map.ts';
import { endpointSlice } from './endpoint-slice.ts';
import { ingress } from './ingress.ts';
import { type OutgoingKind, outgoing } from './kind.ts';
import { secret } from './secret.ts';
import { service } from './service.ts';

export const outgoingKinds: readonly OutgoingKind[] = [
  outgoing(service),
  outgoing(endpointSlice),
  outgoing(ingress),
  outgoing(configMap),
  outgoing(secret),
];
