/** Which programs report the status of virtual nodes, by the field managers in the objects. Pure. */
import type { Claimant } from './facts.ts';

/** Names under which kubelets and virtual kubelets write; controllers and people who edit a Node have others. */
const reporters: ReadonlySet<string> = new Set(['kubelet', 'virtual-kubelet']);

interface Managed {
  readonly items?: readonly {
    readonly metadata: {
      readonly name: string;
      readonly managedFields?: readonly {
        readonly manager?: string;
        readonly subresource?: string;
        readonly time?: string;
      }[];
    };
  }[];
}

/** `text`: a list of Nodes as the API server sends it, with managed fields. */
export const claimantsIn = (text: string): Claimant[] =>
  ((JSON.parse(text) as Managed).items ?? []).flatMap(({ metadata: { name, managedFields = [] } }) =>
    managedFields.flatMap(({ manager = '', subresource, time = '' }) =>
      subresource === 'status' && reporters.has(manager) ? [{ node: name, manager, at: Date.parse(time) }] : [],
    ),
  );
