/** What a rule about objects from the broker looks like. */
import type { DesiredSet, KubeManifest, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';

export interface Rejection {
  readonly code: string;
  readonly message: string;
}

export interface Rule {
  readonly apiVersion: string;
  readonly roles: readonly PeeringRole[];
  readonly names: (set: DesiredSet, self: string) => readonly string[];
  readonly namespaced: boolean;
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
  /** Top-level members besides apiVersion, kind and metadata, each with the member names it may hold. */
  readonly members: Readonly<Record<string, readonly string[]>>;
  /** What the values must be; undefined: accepted. */
  readonly check?: (manifest: KubeManifest, set: DesiredSet) => string | undefined;
}
