/** What the chart can be told, as a schema for Helm: the values of `isthmus install --values` as far as a template can follow them. Pure. */
import * as z from 'zod';
import { presetClassNames } from '#cli/install/settle-storage.ts';
import { InstallValues } from '#cli/install/values.ts';
import { checks } from '#cli/preflight/findings.ts';
import { Port } from '#shared/schema/definition/addresses.ts';
import { defaultSharePercent } from '#shared/schema/isthmus/peering-policy.ts';

const {
  clusterId,
  image,
  apiServerUrl,
  replicas,
  labels,
  sharePercent,
  credentials,
  metrics,
  webhookCallers,
  network,
} = InstallValues.shape;
const ofNetwork = network.unwrap().shape;
const name = z.string().regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/);
const texts = z.record(z.string(), z.string());

/**
 * `helm upgrade --reuse-values` takes the defaults of the release that is there: a value that came after the first release of the chart has none then.
 * It is optional here, and the template knows its default.
 */
const ChartValues = z.strictObject({
  clusterId: clusterId.unwrap(),
  image: image.unwrap(),
  apiServerUrl: apiServerUrl.unwrap(),
  replicas: replicas.unwrap(),
  labels: labels.unwrap(),
  sharePercent: sharePercent.unwrap(),
  credentials,
  metrics: metrics.unwrap(),
  webhookCallers: webhookCallers.unwrap(),
  network: z.strictObject({
    enabled: ofNetwork.enabled.unwrap(),
    podCidrs: ofNetwork.podCidrs,
    serviceCidr: ofNetwork.serviceCidr,
    externalCidr: ofNetwork.externalCidr,
    internalCidr: ofNetwork.internalCidr.unwrap(),
    reservedSubnets: ofNetwork.reservedSubnets.unwrap(),
    gatewayReplicas: ofNetwork.gatewayReplicas,
    fullMasquerade: ofNetwork.fullMasquerade,
  }),
  storage: z.strictObject({
    enabled: z.boolean().describe('Give claims of a virtual StorageClass volumes.'),
    className: name.describe('Name of that class.'),
    capacityClassName: name
      .optional()
      .describe(
        `Name of another one, whose claims go only where there is room for them; absent: ${presetClassNames.capacity}.`,
      ),
    default: z.boolean().describe('The class className is that of claims that name none.'),
    localClass: name.optional().describe('Class of volumes in this cluster; absent: its default class.'),
  }),
  preflight: z
    .strictObject({
      enabled: z
        .boolean()
        .optional()
        .describe('Look at the cluster as `isthmus check` does before an installation or an upgrade; absent: true.'),
      ignore: z.array(z.enum(checks)).optional().describe('Go on although these checks stop.'),
    })
    .optional(),
  platform: z.strictObject({
    webhookPort: Port.describe("Port of the agent's webhooks in its pod."),
    virtualNodeLabels: texts.describe('Labels of the Nodes that stand for providers.'),
    gatewayAnnotations: texts.describe('Annotations of the Services of gateways.'),
    gatewayHealthPort: Port.optional().describe('TCP port at which load balancers check gateways.'),
    securityContextConstraints: z.boolean().describe('Make what OpenShift needs.'),
  }),
});

type Json = { [key: string]: unknown };

/** Ranges are asked for where they are used: a template cannot look for them. */
const rangesWithNetwork = {
  if: { properties: { enabled: { const: true } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: {
    required: ['podCidrs', 'serviceCidr', 'externalCidr'],
    properties: { podCidrs: { minItems: 1 } },
  },
};

export function valuesSchema(): string {
  const schema = z.toJSONSchema(ChartValues, { target: 'draft-7' }) as Json & { properties: Record<string, Json> };
  Object.assign(schema.properties.network as Json, rangesWithNetwork);
  return `${JSON.stringify(schema, null, 2)}\n`;
}

export const valuesYaml = (
  agentImage: string,
): string => `# Written by \`npm run gen\`; edits are lost. Values of isthmus; values.schema.json refuses every other.
# Without a value here: clusterId, apiServerUrl, and with a network podCidrs, serviceCidr and externalCidr.

# Name of the cluster, by which peers know it: lower-case letters, digits and -, at most 63 characters.
# clusterId: rome

# How peers reach this cluster's API server.
# apiServerUrl: https://192.0.2.1:6443

# Image of the agent.
image: ${agentImage}

# Replicas of the agent; one of them works at a time.
replicas: 1

# Labels of the cluster for its peers.
labels: {}

# Most that all consumers together get, in percent of what the own pods of the cluster leave free.
sharePercent: ${defaultSharePercent}

# What consumers get to reach the API server: certificate, token (where the cluster signs no certificates), or auto, what the agent finds. Absent: auto.
# credentials: token

# Serve metrics on every process: authenticated or open; false: none.
metrics: false

# Ranges from which the API server calls the webhooks, to refuse all others by a NetworkPolicy; docs/security.md. Empty: open to all.
webhookCallers: []

network:
  # Install the network between clusters.
  enabled: true
  # Ranges of the pods and of the Services. \`isthmus check\` prints those that it finds.
  # podCidrs: [10.200.0.0/16]
  # serviceCidr: 10.96.0.0/12
  # Range by which peers reach what is no pod; another one for each cluster.
  # externalCidr: 10.70.0.0/16
  # Range of the addresses between nodes and gateways.
  internalCidr: 10.80.0.0/16
  # Ranges that peers must never get here, such as that of the nodes.
  reservedSubnets: []
  # Pods of each gateway, one active. Absent: by the number of nodes.
  # gatewayReplicas: 2
  # Pods reach peers by the address of their node. Absent: as the CNI needs it.
  # fullMasquerade: true

storage:
  # Give claims of a virtual StorageClass volumes.
  enabled: true
  className: ${presetClassNames.plain}
  # Another one, whose claims go only where there is room for them.
  capacityClassName: ${presetClassNames.capacity}
  # The class className is that of claims that name none.
  default: false
  # Class of volumes in this cluster. Absent: its default class.
  # localClass: standard

# Before an installation or an upgrade, a Job looks at the cluster as \`isthmus check\` does; what stops there ends the release before it begins.
preflight:
  enabled: true
  # Checks that may stop without ending it, by their names.
  ignore: []

# What some distributions need; docs/chart.md has the values of each.
platform:
  # Port of the agent's webhooks in its pod.
  webhookPort: 9443
  # Labels of the Nodes that stand for providers.
  virtualNodeLabels: {}
  # Annotations of the Services of gateways.
  gatewayAnnotations: {}
  # TCP port at which load balancers check gateways. Absent: none.
  # gatewayHealthPort: 8083
  # Make what OpenShift needs.
  securityContextConstraints: false
`;
