/** What a WgGatewayServer or WgGatewayClient says about itself, and which WireGuard its pods run. Pure. */
import { type Condition, setCondition } from '#kube/writes/conditions.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { isthmusNetworkAnnotation } from '#shared/domain/network-keys.ts';
import type { InternalNode } from '#shared/schema/liqo/internal-node.ts';
import type { WgGatewayServerStatus } from '#shared/schema/liqo/wg-gateway-server.ts';
import { internalEndpointOf } from './active-pod.ts';
import type { Endpoint, Trouble } from './endpoint.ts';
import type { WireGuardMode } from './objects.ts';

const readyCondition = 'Ready';

/**
 * Kernel only where every node that may get a pod has it. What runs is changed when it could not run, not when something better appears:
 * that would cut the link.
 */
export function wireGuardMode(
  hosts: readonly Node[],
  internal: readonly InternalNode[],
  current: WireGuardMode | undefined,
): WireGuardMode {
  const possible = hosts.filter(({ spec }) => spec?.unschedulable !== true);
  const says = (name: string): string | undefined =>
    internal.find(({ metadata }) => metadata.name === name)?.metadata.annotations?.[isthmusNetworkAnnotation.wireGuard];
  const isKernelEverywhere = possible.length > 0 && possible.every(({ metadata }) => says(metadata.name) === 'kernel');
  return isKernelEverywhere && current !== 'userspace' ? 'kernel' : 'userspace';
}

export interface WgFacts {
  readonly generation: number | undefined;
  readonly conditions: readonly Condition[] | undefined;
  /** In use: undefined while there is none that is usable. */
  readonly secret: { readonly name: string; readonly namespace: string } | undefined;
  readonly secretTrouble: Trouble | undefined;
  /** Undefined for a client that no peer dials. */
  readonly endpoint: Endpoint | Trouble | undefined;
  readonly activePod: Pod | undefined;
  /** Every other reason why nothing works. */
  readonly trouble: Trouble | undefined;
  readonly nowMs: number;
}

const isTrouble = (found: Endpoint | Trouble | undefined): found is Trouble => found !== undefined && 'reason' in found;

export function statusOf(facts: WgFacts): WgGatewayServerStatus {
  const { secret, endpoint, activePod, nowMs, generation } = facts;
  const internalEndpoint = internalEndpointOf(activePod);
  const trouble =
    facts.trouble ??
    facts.secretTrouble ??
    (isTrouble(endpoint) ? endpoint : undefined) ??
    (internalEndpoint === undefined
      ? { reason: 'NoActivePod', message: 'no gateway pod carries the traffic yet; see the pods of its Deployment' }
      : undefined);
  const ready = {
    type: readyCondition,
    status: trouble === undefined ? 'True' : 'False',
    reason: trouble?.reason ?? 'Ready',
    message: trouble?.message ?? 'the gateway has keys and an active pod',
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  } as const;
  return {
    ...(secret === undefined ? {} : { secretRef: { apiVersion: 'v1', kind: 'Secret', ...secret } }),
    ...(endpoint === undefined || isTrouble(endpoint) ? {} : { endpoint: endpoint.endpoint }),
    ...(internalEndpoint === undefined ? {} : { internalEndpoint }),
    conditions: [...setCondition(facts.conditions, ready, nowMs)],
  };
}

export const candidatesOf = (endpoint: Endpoint | Trouble | undefined): readonly string[] =>
  endpoint === undefined || isTrouble(endpoint) ? [] : endpoint.candidates;
