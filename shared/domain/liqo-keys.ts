/** Liqo's labels, annotations, finalizers and well-known names, verbatim (docs/design/control-plane.md#which-names-and-keys-are-fixed). */
export const label = {
  remoteClusterId: 'liqo.io/remote-cluster-id',
  tenantNamespace: 'liqo.io/tenant-namespace',
  replication: 'liqo.io/replication',
  remoteId: 'liqo.io/remoteID',
  originId: 'liqo.io/originID',
  replicated: 'liqo.io/replicated',
  nonce: 'liqo.io/nonce',
  signedNonce: 'liqo.io/signed-nonce',
  identityType: 'liqo.io/identity-type',
  resourceSliceName: 'liqo.io/resourceslice-name',
  creatorUser: 'liqo.io/creator-user',
  remoteTenantCsr: 'liqo.io/remote-tenant-csr',
  type: 'liqo.io/type',
  virtualNode: 'liqo.io/virtual-node',
  schedulingEnabled: 'liqo.io/scheduling-enabled',
  managed: 'liqo.io/managed',
  shadowPod: 'liqo.io/shadowPod',
  remoteUnavailable: 'liqo.io/remote-unavailable',
  managedBy: 'liqo.io/managed-by',
  webhookSkip: 'liqo.io/webhook-skip',
  origin: 'offloading.liqo.io/origin',
  destination: 'offloading.liqo.io/destination',
  nodeName: 'offloading.liqo.io/nodename',
  serviceAccountName: 'offloading.liqo.io/service-account-name',
  storageAvailable: 'storage.liqo.io/available',
} as const;

/** Value of `label.managedBy` on pods that were made of ShadowPods. */
export const managedByShadowPod = 'shadowpod';

export const annotation = {
  remoteTenantNamespace: 'liqo.io/remote-tenant-namespace',
  createVirtualNode: 'liqo.io/create-virtual-node',
  cordon: 'liqo.io/cordon',
  cordonTenant: 'liqo.io/cordon-tenant',
  permanentlyUnreachable: 'liqo.io/foreign-cluster-permanently-unreachable',
  managedByNamespaceMap: 'liqo.io/managed-by-namespace-map',
  originalName: 'liqo.io/original-name',
  remoteRuntimeClassName: 'liqo.io/remote-runtime-class-name',
  skipReflection: 'liqo.io/skip-reflection',
  allowReflection: 'liqo.io/allow-reflection',
  forceRemoteNodePort: 'liqo.io/force-remote-node-port',
  apiServerSupport: 'liqo.io/api-server-support',
  remoteServiceAccountName: 'liqo.io/remote-service-account-name',
  tokenPodName: 'offloading.liqo.io/service-account-for-pod-name',
  tokenPodUid: 'offloading.liqo.io/service-account-for-pod-uid',
  tokenExpiration: 'offloading.liqo.io/service-account-expiration',
} as const;

export const finalizer = {
  tenant: 'tenant.liqo.io/finalizer',
  replicatorSecret: 'crdreplicator.liqo.io/operator',
  replicatorResource: 'crdreplicator.liqo.io/resource',
  virtualNode: 'virtualnode-controller.liqo.io/finalizer',
  namespaceMap: 'namespacemap-controller.liqo.io/finalizer',
  namespaceOffloading: 'namespaceoffloading-controller.liqo.io/finalizer',
} as const;

/** The taint of every virtual node, and the key of the toleration that the pod webhook injects. */
export const virtualNodeTaint = {
  key: 'virtual-node.liqo.io/not-allowed',
  value: 'true',
  effect: 'NoExecute',
} as const;
/** On a virtual node whose provider takes no new pods for now. */
export const cordonedTaint = { key: 'isthmus.dev/cordoned', value: 'true', effect: 'NoSchedule' } as const;
export const virtualNodeType = 'virtual-node';
/** The only name a NamespaceOffloading may have. */
export const namespaceOffloadingName = 'offloading';
/** Group that every control-plane certificate carries (its O), besides CN = consumer cluster ID. */
export const controlPlaneGroup = 'liqo.io';

/** Where Isthmus itself lives in a cluster; liqoctl looks for `liqo`. */
export const systemNamespace = 'liqo';
export const clusterIdConfigMap = 'liqo-clusterid-configmap';
/** Of the agent's webhooks: both configurations have the one name and the label, the Service the other. */
export const admission = {
  configuration: 'isthmus-webhook',
  service: 'isthmus-webhook',
  label: 'liqo.io/webhook',
} as const;
export const authenticationKeysSecret = 'authentication-keys';
/** Ours, in that Secret: the pair before the last rotation, for as long as a provider has certified no other. */
export const keyFields = {
  previousPrivate: 'previousPrivateKey',
  previousPublic: 'previousPublicKey',
  /** By the pair before the present one. Stays when that pair is forgotten: it is public. */
  succession: 'succession',
} as const;

export const name = {
  tenantNamespace: (peer: string): string => `liqo-tenant-${peer}`,
  nonceSecret: 'liqo-nonce',
  signedNonceSecret: 'liqo-signed-nonce',
  controlPlaneIdentity: (provider: string): string => `controlplane-${provider}`,
  sliceIdentity: (slice: string): string => `resourceslice-${slice}`,
  kubeconfigSecret: (identity: string): string => `kubeconfig-${identity}`,
  /** Name of the reflected `kube-root-ca.crt` and so on is decided where it is used. */
  defaultRemoteNamespace: (namespace: string, consumer: string): string => `${namespace}-${consumer}`,
} as const;

/** Ours, beside Liqo's. */
export const isthmusLabel = {
  /** On everything that the channel applied for a peering: its id at the broker. */
  peering: 'isthmus.dev/peering',
  /** On the Secret that the tokens of a consumer are bound to: the ServiceAccount that they are of. */
  credentialOf: 'isthmus.dev/credential-of',
  /** On local pods that wait behind our scheduling gate until their namespace is offloaded. */
  gated: 'isthmus.dev/waiting-for-offloading',
  /** On local pods that wait behind our scheduling gate until the volume of a claim of theirs has been moved. */
  waitsForMove: 'isthmus.dev/waiting-for-volume-move',
} as const;
/** Scheduling gate of local pods that may run on virtual nodes only, until a provider has their namespace. */
export const offloadingGate = 'isthmus.dev/offloading';
export const isthmusAnnotation = {
  /** On ShadowPods: UID of the local pod they stand for; a different one means the pod was replaced under the same name. */
  localPodUid: 'isthmus.dev/local-pod-uid',
  /** On ShadowPods: namespace of that pod, which the downward API gives to its containers. */
  localNamespace: 'isthmus.dev/local-namespace',
  /** On offloaded local pods, JSON: UID of the remote pod last seen, and restarts counted before it. */
  remotePod: 'isthmus.dev/remote-pod',
  /** On a provider's copy of a ResourceSlice: take the grant back. `true`, or the time (RFC 3339) from which pods that are left are deleted. */
  drain: 'isthmus.dev/drain',
  /** On virtual Nodes, JSON: the label, annotation and taint keys that we put there, so that dropped ones can be removed. */
  nodeApplied: 'isthmus.dev/applied',
  /** On pods made of ShadowPods, JSON: the label and annotation keys that came from there, so that dropped ones can be removed. */
  propagated: 'isthmus.dev/propagated',
  /** On a NamespaceOffloading, `true`: pods that a changed policy no longer allows where they run are evicted, within their disruption budgets. */
  drainOnPolicyChange: 'isthmus.dev/drain-on-policy-change',
  /** On a tenant namespace: peering of the broker that was ended in this cluster, by deleting its objects. */
  ended: 'isthmus.dev/ended',
  /** On a Tenant: fingerprint of the one other key that may speak for this consumer from now on (consent to a new life of the peer). */
  acceptKey: 'isthmus.dev/accept-key',
  /** On a Tenant, base64: the consumer's former key signs its new one. */
  keySuccession: 'isthmus.dev/key-succession',
  /** On the Secret with the key pair of the cluster, `certificate` or `token`: what was found out about its signer. Without it the agent tries again. */
  credentials: 'isthmus.dev/credentials',
  /** Beside it: why, in words. */
  credentialsReason: 'isthmus.dev/credentials-reason',
  /** On a ForeignCluster: which ways the peerings with it were made, and so where they are changed. */
  owner: 'isthmus.dev/owner',
  /** On a ForeignCluster that gives capacity, `OutOfBand` or `InBand`: its API server is asked directly, or through the link. */
  peeringType: 'isthmus.dev/peering-type',
  /** On a Tenant, by an administrator of the provider, `true`: CONNECT to the API server without a token, from the addresses of this consumer's link. */
  inBandWithoutToken: 'isthmus.dev/in-band-without-token',
  /** On a Tenant, by an administrator of the provider, `true`: this consumer comes to the API server by the front door. */
  frontDoor: 'isthmus.dev/front-door',
  /** On reflected objects: digest of what was last applied, so that what is no longer wanted is taken away, after a restart too. */
  reflected: 'isthmus.dev/reflected',
  /** On a tenant namespace, by an administrator, a comma list: what a peer may announce there besides https and public proxies: `http`, `private-proxy`. */
  acceptedEndpoints: 'isthmus.dev/accepted-endpoints',
  /** On a namespace, `disabled`: no tokens for this cluster's API server are made for its pods at providers. Pods cannot change that. */
  apiServerTokens: 'isthmus.dev/api-server-tokens',
  /** On a control-plane kubeconfig Secret: its proxy, which is an address in the ranges of the peer and so reached through the link alone. */
  proxyInLink: 'isthmus.dev/proxy-in-link',
} as const;
/** Reason of a ResourceSlice that is denied until a node of the provider that takes pods of guests is Ready. The provider looks again by itself. */
export const noNodeReadyReason = 'NoNodeReady';
export const fieldManager = {
  /** Objects desired by the broker. */
  broker: 'isthmus-broker',
  /** What is reflected to a provider: Liqo's, so that a cluster that moves from Liqo owns its fields. */
  reflection: 'reflection.liqo.io',
  /** Everything the agent's own controllers write. */
  agent: 'isthmus',
} as const;

/** Node selector of everything that runs a program of ours. */
export const linuxOnly = { 'kubernetes.io/os': 'linux' } as const;
