/** Which nodes stand for providers. Pure. */
import type { Node } from './kube-object.ts';
import { label, virtualNodeType } from './liqo-keys.ts';

export const isVirtualNode = (node: Pick<Node, 'metadata'> | undefined): boolean =>
  node?.metadata.labels?.[label.type] === virtualNodeType;
