/** Which rules hold for the pods and objects of a consumer at this provider: what its policies say, else what is safe. Pure. */
import { termsFor } from '#agent/peering/slices/grant.ts';
import type { GuestPolicy } from '#shared/schema/isthmus/guest-policy.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';

export type GuestRules = { readonly [K in keyof GuestPolicy]-?: NonNullable<GuestPolicy[K]> };

/** Their values are a word or a number. */
const nginx = (key: string): string => `nginx.ingress.kubernetes.io/${key}`;

/** What holds where no policy says otherwise (docs/guests.md argues each). */
export const safeRules: GuestRules = {
  podSecurity: 'baseline',
  volumes: ['configMap', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim', 'projected', 'secret'],
  tolerations: [],
  nodeLabels: [
    ...['kubernetes.io/arch', 'kubernetes.io/os', 'node.kubernetes.io/instance-type'],
    ...['topology.kubernetes.io/region', 'topology.kubernetes.io/zone'],
  ],
  schedulers: [],
  runtimeClasses: [],
  priorityClasses: [],
  serviceAccounts: [],
  tokenAudiences: [],
  nodeAnnotations: [],
  maxGracePeriodSeconds: 600,
  limitsEnforcement: 'Soft',
  // The grant by default (4 CPUs, 8Gi, 110 pods) runs out of pods first.
  defaultRequests: { cpu: '25m', memory: '64Mi' },
  defaultLimits: {},
  // Of liqoctl's network test, which maps with EnforceSameName.
  namespaces: ['liqo-test-network'],
  maxNamespaces: 100,
  networkIsolation: true,
  closedRanges: [
    ...['169.254.0.0/16', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'],
    ...['fe80::/10', 'fc00::/7'],
  ],
  networkPeers: [],
  ingressHosts: [],
  annotations: [
    ...['isthmus.dev/*', 'liqo.io/*', 'offloading.liqo.io/*', 'networking.liqo.io/*', 'ipam.liqo.io/*'],
    ...['kubectl.kubernetes.io/*', 'app.kubernetes.io/*', 'meta.helm.sh/*', 'helm.sh/*', 'prometheus.io/*'],
    ...['argocd.argoproj.io/tracking-id', 'kustomize.toolkit.fluxcd.io/*', 'helm.toolkit.fluxcd.io/*'],
    ...['endpoints.kubernetes.io/last-change-trigger-time', 'service.kubernetes.io/topology-mode'],
    ...['service.kubernetes.io/topology-aware-hints', 'service.alpha.kubernetes.io/tolerate-unready-endpoints'],
    ...['ssl-redirect', 'force-ssl-redirect', 'backend-protocol', 'proxy-body-size', 'proxy-connect-timeout'].map(
      nginx,
    ),
    ...['proxy-read-timeout', 'proxy-send-timeout'].map(nginx),
  ],
  loadBalancerAddresses: false,
  loadBalancerClasses: [],
  externalNames: [],
};

/** Of several policies about this consumer, each field is that of the first by name that has it. */
export function guestRules(policies: readonly PeeringPolicy[], consumer: string): GuestRules {
  const said = termsFor(policies, consumer).flatMap(([, { guests }]) => (guests ? [guests] : []));
  const given = said.map((one) => Object.fromEntries(Object.entries(one).filter(([, value]) => value != null)));
  return Object.assign({}, safeRules, ...given.reverse());
}
