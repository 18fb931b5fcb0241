/** Why specs of Kubernetes' own suite fail on a virtual node, or are not run there. `npm run conformance` refuses reasons that are not true any more. */
import type { Reason } from './report.ts';

export const reasons: readonly Reason[] = [
  {
    specs: /Container Runtime .* should be able to pull image/,
    state: 'not applicable',
    reason: 'the test bed has no registry to pull from; the kubelet of the provider pulls images, as for its own pods',
  },
  {
    specs: /Pods should cap back-off at MaxContainerBackOff/,
    state: 'not applicable',
    reason: 'takes half an hour to measure how the kubelet of the provider counts its back-off',
  },
  {
    specs: /KubeletManagedEtcHosts should test kubelet managed/,
    state: 'failed',
    reason:
      'wants a pod with hostNetwork: a pod at a provider is never in the network of its nodes, which belong to another administrator, so its file is managed',
  },
  {
    specs: /PodOSRejection .* should reject pod when the node OS doesn't match pod's OS/,
    state: 'failed',
    reason:
      'wants the kubelet to refuse a pod for Windows: in a namespace offloaded with strategy Remote it is refused when it is created, by name of the field',
  },
  {
    specs: /PrivilegedPod .* should enable privileged commands/,
    state: 'failed',
    reason:
      'adds a network interface of type dummy, which the kernel of this machine does not have: it answers "Operation not supported", and to a container without privileges "Operation not permitted"',
  },
];

/** The same where half of the nodes are virtual. */
export const halfReasons: readonly Reason[] = [
  {
    specs:
      /\[sig-network\] (Services should (serve (endpoints on same port|multiport endpoints)|be able to (change the type from ExternalName to|switch session affinity for|create a functioning NodePort)|have session affinity work for)|DNS should (provide DNS for (ExternalName )?services|resolve DNS of partial qualified names)|EndpointSlice should support a Service with multiple)/,
    state: 'placement',
    reason:
      'asks from a pod for the ClusterIP that the Service has in its home, by address or by DNS; a pod at the provider finds and reaches the one that the Service has there (docs/offloading.md)',
  },
  {
    specs: /StatefulSet .* Should recreate evicted statefulset/,
    state: 'placement',
    reason:
      'wants the kubelet to reject a pod whose host port is taken on the node that it names; a pod at a provider waits there for a node with that port',
  },
];
