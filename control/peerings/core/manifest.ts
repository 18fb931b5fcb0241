/** A manifest as desired sets carry it. */
import { apiVersionOf, type ResourceType } from '#shared/domain/kube-object.ts';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';

interface Body {
  readonly name: string;
  readonly namespace?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export const manifest = (
  type: ResourceType,
  metadata: Body,
  members: Readonly<Record<string, unknown>> = {},
): KubeManifest => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  metadata: { ...metadata, labels: { ...metadata.labels } } as KubeManifest['metadata'],
  ...members,
});
