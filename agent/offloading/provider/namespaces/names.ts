/** Which names a consumer may have for its namespaces at this provider. Pure. */

/**
 * Names that charts and operators install themselves under, or that platforms treat as their own. A guest that has such a namespace before its owner
 * reads what is installed into it later.
 */
const reserved: readonly string[] = `
  kube-* k8s-* *-system *-operator *-operators *-controller *-controllers *-manager openshift openshift-*
  istio-* linkerd linkerd-* knative-* tekton-* argo argocd argo-* flux flux-* fleet-* cattle-* rancher-* gke-*
  gmp-* aks-* azure-* aws-* amazon-* eks-* anthos-* asm-* config-management-* capi-* isthmus isthmus-* liqo
  liqo-storage liqo-tenant-* ingress ingress-* nginx-ingress traefik haproxy haproxy-* kong contour
  projectcontour monitoring prometheus grafana loki logging observability elastic-stack datadog newrelic vault
  external-secrets external-dns sealed-secrets spire spire-* consul kyverno falco trivy velero longhorn
  rook-ceph openebs portworx minio metallb cilium calico-* tigera-* olm crossplane karpenter keda harbor jenkins
  gitlab gitlab-* default
`
  .trim()
  .split(/\s+/);

const matches = (pattern: string, name: string): boolean => {
  if (pattern.startsWith('*')) return name.endsWith(pattern.slice(1));
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
};

/**
 * Undefined when `consumer` may have it. `accepted`: the patterns of its policy. A reserved name needs a pattern that says more than `*`, and a suffix
 * does not help: consumers choose their IDs, and `cert-manager` is the namespace `cert` of a consumer `manager`.
 */
export function guestNameProblem(name: string, consumer: string, accepted: readonly string[]): string | undefined {
  if (accepted.some((pattern) => pattern !== '*' && matches(pattern, name))) return undefined;
  const taken = reserved.find((pattern) => matches(pattern, name));
  const how = 'the provider may accept it by name in guests.namespaces of its PeeringPolicy';
  if (taken !== undefined) return `${JSON.stringify(name)} is reserved at this provider (${taken}): ${how}`;
  if (accepted.includes('*') || (name.endsWith(`-${consumer}`) && name.length > consumer.length + 1)) return undefined;
  const also = accepted.length > 0 ? ` or ${accepted.join(', ')}` : '';
  return `${JSON.stringify(name)} is not accepted: accepted are names that end with -${consumer}${also}; ${how}`;
}
