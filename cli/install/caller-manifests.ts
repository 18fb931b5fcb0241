/**
 * What `--webhook-callers` adds: NetworkPolicies that close the ports of the controllers which only the API server calls, webhooks and the kubelet APIs of virtual nodes, to all
 * but the ranges from where it calls. Policies add up, so that each range has one of its own. They hold for pods with an address of their own. Pure.
 */
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import { installLabel } from './install-label.ts';

export interface CallerPolicy extends KubeObject {
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly policyTypes: readonly ['Ingress'];
    readonly ingress: readonly {
      readonly from?: readonly object[];
      readonly ports?: readonly { readonly port: string | number; readonly protocol: 'TCP' }[];
    }[];
  };
}

export const networkPolicies: ResourceType<CallerPolicy> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
};

/** By which an update finds the ranges, and people remove them. */
export const callersLabel = 'isthmus.dev/webhook-callers';
const name = 'isthmus-agent-callers';

/** Known to their callers by other means: probes, scrapers, and consumers with their tokens and certificates. */
const forAll = ['health', 'metrics', networkPort.apiServerProxy, networkPort.frontDoor] as const;

const policy = (called: string, pods: Readonly<Record<string, string>>, ingress: CallerPolicy['spec']['ingress']) =>
  ({
    apiVersion: 'networking.k8s.io/v1',
    kind: networkPolicies.kind,
    metadata: { name: called, namespace: systemNamespace, labels: { ...installLabel, [callersLabel]: 'true' } },
    spec: { podSelector: { matchLabels: { ...pods } }, policyTypes: ['Ingress'], ingress },
  }) satisfies CallerPolicy;

/** `callers`: ranges; empty: no policy at all. `pods`: labels of the controllers. */
export function callerManifests(callers: readonly string[], pods: Readonly<Record<string, string>>): CallerPolicy[] {
  if (callers.length === 0) return [];
  // Where the control plane is elsewhere, its tunnel ends in a pod of this namespace (konnectivity-agent).
  const tunnels = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } };
  const open = forAll.map((port) => ({ port, protocol: 'TCP' }) as const);
  return [
    policy(name, pods, [{ ports: open }, { from: [tunnels] }]),
    ...callers.map((cidr) =>
      policy(`${name}-${cidr.replaceAll(/[./]/g, '-')}`, pods, [{ from: [{ ipBlock: { cidr } }] }]),
    ),
  ];
}

/** The ranges that are installed. */
export const callersOf = (policies: readonly CallerPolicy[]): string[] =>
  policies.flatMap(({ spec }) =>
    spec.ingress.flatMap(({ from = [] }) =>
      from.flatMap((peer) => ('ipBlock' in peer ? [(peer.ipBlock as { cidr: string }).cidr] : [])),
    ),
  );
