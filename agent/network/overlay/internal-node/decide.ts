/** One node's end of the overlay, as objects. Pure. */
import { createHash } from 'node:crypto';
import type { Collision } from '#agent/network/ipam/ipam.ts';
import type { Applied } from '#kube/model/types.ts';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import type { InternalNode } from '#shared/schema/liqo/internal-node.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';

/** As Liqo names them, `liqo.` and ten characters; always the same for the same object. */
export function interfaceName(seed: string): string {
  const digest = createHash('sha256').update(seed).digest();
  return `liqo.${[...digest.subarray(0, 10)].map((byte) => (byte % 36).toString(36)).join('')}`;
}

export const buildInternalNode = (node: string, address: string): Applied<InternalNode> => ({
  apiVersion: apiVersionOf(networkKinds.internalNodes),
  kind: networkKinds.internalNodes.kind,
  metadata: { name: node, labels: { [label.managed]: 'true' } },
  spec: { interface: { gateway: { name: interfaceName(`node ${node}`) }, node: { ip: address } } },
});

/** By which peers see what the node itself sends. */
export const buildNodeIp = (node: string, namespace: string, address: string): Applied<Ip> => ({
  apiVersion: apiVersionOf(networkKinds.ips),
  kind: networkKinds.ips.kind,
  metadata: { name: networkName.nodeIp(node), namespace, labels: { [label.managed]: 'true' } },
  spec: { ip: address },
});

/** Undefined: no range granted to others overlaps the node's own addresses. */
export const collisionMessage = (node: string, collisions: readonly Collision[]): string | undefined =>
  collisions.length === 0
    ? undefined
    : `${collisions.map((one) => `${one.range} of node ${node} overlaps ${one.with.join(', ')}`).join('; ')}: packets for one reach the other; delete and create again the Network or Configuration that got it, which is then moved`;

export const nodeOfIp = (ipName: string): string | undefined =>
  ipName.startsWith('node-') ? ipName.slice('node-'.length) : undefined;
