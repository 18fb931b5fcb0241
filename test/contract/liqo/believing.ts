/** Liqo believes every label that a provider claims; Isthmus those that a policy lists. */
import { type PeeringPolicy, ReflectedKind } from '#shared/schema/isthmus/peering-policy.ts';

export const believing: PeeringPolicy = {
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringPolicy',
  metadata: { name: 'believing' },
  spec: {
    tenants: ['*'],
    asConsumer: { enabled: true, autoAccept: true, peers: ['*'], nodeLabels: { region: ['south'] } },
    reflectedKinds: [...ReflectedKind.options],
  },
};
