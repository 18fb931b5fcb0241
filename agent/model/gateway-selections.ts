/** The selections by which the gateway controllers watch built-in kinds, without what none of them reads. */
import type { Cache, Caches } from '#kube/model/types.ts';
import {
  type Deployment,
  deployments,
  nodes,
  pods,
  roleBindings,
  type Service,
  services,
} from '#shared/domain/core-kinds.ts';
import type { Node, ObjectMeta, Pod, RoleBinding } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { gatewayComponent, networkLabel } from '#shared/domain/network-keys.ts';

const labelSelector = `${networkLabel.component}=${gatewayComponent}`;

export const gatewayDeployments = (caches: Caches): Cache<Deployment> => caches.cache(deployments, { labelSelector });

export const gatewayBindings = (caches: Caches): Cache<RoleBinding> => caches.cache(roleBindings, { labelSelector });

export const gatewayServices = (caches: Caches): Cache<Service> => caches.cache(services, { labelSelector });

const lean = ({ annotations: _, ...metadata }: ObjectMeta): ObjectMeta => metadata;

const prunePod = ({ apiVersion, kind, metadata, spec, status }: Pod): Pod =>
  ({
    apiVersion,
    kind,
    metadata: lean(metadata),
    spec: { nodeName: spec?.nodeName },
    status: { phase: status?.phase, podIP: status?.podIP },
  }) as Pod;
export const gatewayPods = (caches: Caches): Cache<Pod> => caches.cache(pods, { labelSelector, transform: prunePod });

/** Of a node: where it is, whether it is ready, and what could be scheduled there. */
const pruneNode = ({ apiVersion, kind, metadata, spec, status }: Node): Node =>
  ({
    apiVersion,
    kind,
    metadata: lean(metadata),
    spec: { unschedulable: spec?.unschedulable },
    status: {
      addresses: status?.addresses,
      conditions: status?.conditions
        ?.filter(({ type }) => type === 'Ready')
        .map(({ type, status: is }) => ({ type, status: is })),
    },
  }) as Node;
export const gatewayHosts = (caches: Caches): Cache<Node> =>
  caches.cache(nodes, { labelSelector: `${label.type}!=${virtualNodeType}`, transform: pruneNode });
