/** Sizes of packets on the links whose active gateway this node runs, as far as they differ from what the objects say. */
import { configuredMtu, type Link } from './link-objects.ts';

export interface LinkSizes {
  /** Links (by name) whose path is being measured: their devices have the configured size meanwhile. */
  readonly measuring: ReadonlySet<string>;
  /** What was found on the path; other nodes learn it from the InternalFabric a little later. */
  readonly found: ReadonlyMap<string, number>;
}

export function sizeOf(link: Link, effective: number, sizes: LinkSizes | undefined): number {
  if (sizes?.measuring.has(link.name)) return configuredMtu(link.gateway);
  return Math.min(effective, sizes?.found.get(link.name) ?? effective);
}
