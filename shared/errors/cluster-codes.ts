/** Codes of what happens inside a cluster: admission, and the Kubernetes API as a client sees it. Part of `codes.ts`. */
import type { CodeFacts } from './code-facts.ts';

export const clusterCodes = {
  // admission
  namespace_not_offloaded: {
    http: 409,
    retry: true,
    exit: 5,
    cause: 'the namespace is labelled for offloading, but has no NamespaceOffloading named offloading',
    remedy: 'create it with `isthmus offload namespace`, or remove the label liqo.io/scheduling-enabled',
  },
  quota_missing: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the provider keeps no Quota for the user that creates the pod',
    remedy: 'wait until the ResourceSlice is accepted, and use the credentials of that slice',
  },
  quota_cordoned: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the provider takes no new pods of this slice or tenant for now',
    remedy: 'ask the provider to uncordon it; running pods stay',
  },
  quota_exceeded: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the pod asks for more than is left of what the provider granted',
    remedy: 'ask for more with `isthmus peer`, or lower the requests that the message names',
  },
  sandbox_refused: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the pod or object asks for what a guest does not get at this provider',
    remedy: 'remove the field that the message names, or have the provider allow it (docs/guests.md)',
  },
  storage_class_not_offered: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'a claim names a StorageClass that the provider does not lend to this consumer',
    remedy:
      'name one of the classes in the message, or have the provider add it to asProvider.storageClasses of its PeeringPolicy (docs/storage.md)',
  },
  owned_by_object: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'a Peering object inside the consumer cluster has the last word about this peering',
    remedy:
      'change the object that the message names, or set its spec.owner to Broker; ending the peering is always possible',
  },
  rolled_back: {
    http: 504,
    retry: false,
    exit: 8,
    cause: 'the new agent of a cluster did not become ready, and the one before was put back',
    remedy: 'mend what the message names, and repeat the command',
  },
  peer_alive: {
    http: 409,
    retry: false,
    exit: 5,
    cause: 'the other cluster answers, and forcing the end would leave its side as it is',
    remedy: 'unpeer without --force, or take the other cluster down first',
  },

  // checks before an installation
  kubernetes_unsupported: {
    http: 409,
    retry: false,
    exit: 6,
    cause: 'the Kubernetes of the cluster is older than Isthmus works with',
    remedy: 'upgrade the cluster to the version that the message names',
  },
  no_usable_node: {
    http: 409,
    retry: false,
    exit: 6,
    cause: 'no node of the cluster, or one that is named, can run what is to be installed',
    remedy: 'add a Linux node with a kernel and architecture that the message names',
  },
  pod_security_refused: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'a policy of the cluster refuses the privileged pods of the network',
    remedy: 'have that policy leave out the namespaces liqo and liqo-tenant-*, or install with --no-network',
  },
  clock_skewed: {
    http: 409,
    retry: true,
    exit: 6,
    cause: "this machine's clock and the API server's are more than a minute apart",
    remedy: 'set the wrong one by NTP',
  },
  preflight_failed: {
    http: 409,
    retry: false,
    exit: 6,
    cause: 'more than one thing stands in the way of installing the agent in this cluster',
    remedy: 'mend what is listed; `isthmus check` looks again and changes nothing',
  },

  // trust between clusters
  peer_unproven: {
    http: 409,
    retry: true,
    exit: 6,
    cause: 'what the broker says of a peer is not what that peer has signed, or not yet, or no longer',
    remedy:
      'wait a moment; if it lasts, the agent of the peer is too old, its clock was set back, or the broker changes what it passes on',
  },
  announcement_refused: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the announcement of a peer is forged, damaged, or of another cluster or account',
    remedy: 'distrust the broker until it is known why',
  },
  peer_key_refused: {
    http: 403,
    retry: false,
    exit: 6,
    cause: 'the broker presents a peer by a key that this cluster does not trust',
    remedy:
      'compare the fingerprint with the administrator of that cluster, then name it in spec.fingerprint of the TrustedPeer, or sign with `isthmus lock sign`',
  },
  consent_missing: {
    http: 403,
    retry: true,
    exit: 6,
    cause:
      'no PeeringPolicy of this cluster accepts the peering by itself, and no administrator has agreed to it inside the cluster',
    remedy: 'add the role to spec.consent of the TrustedPeer, or set autoAccept in a PeeringPolicy',
  },

  // Kubernetes API
  kube_unreachable: {
    http: 503,
    retry: true,
    exit: 7,
    cause: 'the Kubernetes API server did not answer',
    remedy: 'check the server URL in the kubeconfig and that the API server runs',
  },
  kube_unauthorized: {
    http: 502,
    retry: false,
    exit: 3,
    cause: 'the Kubernetes API server refused the credentials',
    remedy: 'renew the kubeconfig',
  },
  move_refused: {
    http: 409,
    retry: false,
    exit: 6,
    cause: 'the volume cannot be moved as asked; nothing was changed',
    remedy: 'do what the message says, and ask again',
  },
  move_not_undoable: {
    http: 409,
    retry: false,
    exit: 5,
    cause:
      'confirm and undo of a move of a volume are accepted while it is Undoable: from the switch on until the undo window ends',
    remedy:
      'ask with `isthmus move volume CLAIM -n NAMESPACE status`; before the switch abort is accepted, and without confirm the volume that was left goes when the window ends',
  },
  move_failed: {
    http: 409,
    retry: true,
    exit: 7,
    cause: 'a move did not come to its end; the claim has the volume that it had',
    remedy: 'remove the cause that the message names, and move again',
  },
  kube_forbidden: {
    http: 502,
    retry: false,
    exit: 3,
    cause: 'the credentials have no right for this on that cluster',
    remedy: 'grant the right that the message names',
  },
  kube_not_found: {
    http: 502,
    retry: false,
    exit: 4,
    cause: 'the object does not exist on that cluster',
    remedy: 'check kind, namespace and name',
  },
  kube_already_exists: {
    http: 502,
    retry: false,
    exit: 5,
    cause: 'the object exists already on that cluster',
    remedy: 'update it instead',
  },
  kube_conflict: {
    http: 502,
    retry: true,
    exit: 5,
    cause: 'the object changed meanwhile, or another manager owns the field',
    remedy: 'read it again and repeat',
  },
  kube_invalid: {
    http: 502,
    retry: false,
    exit: 2,
    cause: 'the API server or an admission webhook refused the object',
    remedy: 'correct the field that the message names',
  },
  kube_gone: {
    http: 502,
    retry: true,
    exit: 7,
    cause: 'the requested resource version is too old',
    remedy: 'list again',
  },
  kube_throttled: {
    http: 503,
    retry: true,
    exit: 7,
    cause: 'the API server asked to slow down',
    remedy: 'wait and retry',
  },
  kube_failed: {
    http: 502,
    retry: true,
    exit: 7,
    cause: 'the API server answered with an unexpected status',
    remedy: 'look at the message and the API server log',
  },
} as const satisfies Record<string, CodeFacts>;
