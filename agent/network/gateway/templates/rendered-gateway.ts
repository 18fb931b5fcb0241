/** The concrete gateway that a GatewayServer or GatewayClient and a template make together. Pure. */
import type { Applied } from '#kube/model/types.ts';
import type { KubeObject, OwnerReference } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { defaultMtu, isthmusNetworkAnnotation, networkLabel, networkName } from '#shared/domain/network-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { GatewayTemplateSpec } from '#shared/schema/liqo/rendered-gateway.ts';
import { withDigest } from '../wireguard/objects.ts';
import { renderTree, type Tree } from './render-tree.ts';

export interface RenderInput {
  readonly gateway: GatewayServer | GatewayClient;
  readonly owner: OwnerReference;
  readonly peer: string;
  readonly template: GatewayTemplateSpec;
}

/** A concrete gateway of any kind that a template names. */
export type RenderedGateway = KubeObject & {
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
};

/** Annotations of a gateway that its concrete gateway needs to know. */
const handedDown = [isthmusNetworkAnnotation.endpoint, isthmusNetworkAnnotation.listen];

type Texts = Record<string, string>;
const textsOf = (value: unknown): Texts => (typeof value === 'object' && value !== null ? (value as Texts) : {});

/** Name and namespace are the gateway's own. Fails with `invalid_input` that says what is wrong in the template. */
export function renderGateway({ gateway, owner, peer, template }: RenderInput): Applied<RenderedGateway> {
  const { name, namespace = '', uid = '', annotations = {} } = gateway.metadata;
  const rendered = renderTree(template.template as Tree, {
    Spec: withDefaults(gateway),
    Name: name,
    Namespace: namespace,
    GatewayUID: uid,
    ClusterID: peer,
    SecretName: gateway.spec.secretRef?.name || networkName.gateway(name),
  }) as { metadata?: { labels?: Texts; annotations?: Texts }; spec?: Record<string, unknown> };
  const own = Object.fromEntries(
    handedDown.flatMap((key) => (annotations[key] === undefined ? [] : [[key, annotations[key]]])),
  );
  return withDigest({
    apiVersion: template.objectKind.apiVersion,
    kind: template.objectKind.kind,
    metadata: {
      name,
      namespace,
      labels: {
        ...textsOf(rendered.metadata?.labels),
        [label.managed]: 'true',
        [label.remoteClusterId]: peer,
        [networkLabel.gatewayName]: name,
        [networkLabel.gatewayNamespace]: namespace,
      },
      annotations: { ...textsOf(rendered.metadata?.annotations), ...own },
      ownerReferences: [owner],
    },
    spec: withSecret(withServiceMetadata(requiredSpec(rendered.spec), gateway), gateway),
  });
}

function requiredSpec(spec: unknown): Record<string, unknown> {
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec))
    throw new AppError('invalid_input', `spec.template.spec is ${JSON.stringify(spec)}, accepted: an object`);
  return spec as Record<string, unknown>;
}

/** Templates know one port; a list stands for its first entry where only the list is given. */
function withDefaults({ spec }: GatewayServer | GatewayClient): object {
  const endpoint: Partial<GatewayServer['spec']['endpoint']> = spec.endpoint ?? {};
  const port = endpoint.port ?? endpoint.ports?.[0];
  const nodePort = endpoint.nodePort ?? endpoint.nodePorts?.[0];
  return {
    ...spec,
    mtu: spec.mtu ?? defaultMtu,
    endpoint: {
      ...endpoint,
      ...(port === undefined ? {} : { port }),
      ...(nodePort === undefined ? {} : { nodePort }),
    },
  };
}

/** `serviceAnnotations` and `serviceLabels` go over what the template says. */
function withServiceMetadata(
  spec: Record<string, unknown>,
  { spec: asked }: GatewayServer | GatewayClient,
): Record<string, unknown> {
  const { serviceAnnotations, serviceLabels } = asked as GatewayServer['spec'];
  if (serviceAnnotations === undefined && serviceLabels === undefined) return spec;
  const service = (spec.service ?? {}) as { metadata?: { labels?: Texts; annotations?: Texts } };
  const metadata = {
    ...service.metadata,
    labels: { ...service.metadata?.labels, ...serviceLabels },
    annotations: { ...service.metadata?.annotations, ...serviceAnnotations },
  };
  return { ...spec, service: { ...service, metadata } };
}

const withSecret = (
  spec: Record<string, unknown>,
  { spec: asked }: GatewayServer | GatewayClient,
): Record<string, unknown> => (asked.secretRef?.name ? { ...spec, secretRef: { name: asked.secretRef.name } } : spec);
