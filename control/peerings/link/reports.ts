/** Reads what an agent reported about its end of a link. What does not have the agreed form counts as not there. */
import * as z from 'zod';
import { networkCidrsConfigured, networkName } from '#shared/domain/network-keys.ts';
import type { ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import type { ConnectionReport } from '../../model/link.ts';

const Range = z.string().regex(/^[0-9.]{7,15}\/[0-9]{1,2}$/);
const Endpoint = z
  .string()
  .max(300)
  .regex(/^[-A-Za-z0-9.]{1,253}:[0-9]{1,5}$/);
const Condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
  observedGeneration: z.int().optional(),
});
const Cidr = z.object({ pod: z.array(Range).default([]), external: z.array(Range).default([]) });
const ConfigurationData = z.object({
  remote: z.object({ cidr: Cidr }).optional(),
  conditions: z.array(Condition).default([]),
});
const GatewayData = z.object({
  candidates: z.array(Endpoint).default([]),
  endpoint: z
    .object({
      addresses: z.array(z.string()).default([]),
      port: z.int().optional(),
      ports: z.array(z.int()).default([]),
    })
    .optional(),
  conditions: z.array(Condition).default([]),
});
const KeyData = z.object({ publicKey: z.string().regex(/^[A-Za-z0-9+/]{43}=$/) });
const ConnectionData = z.object({
  value: z.string().optional(),
  latency: z
    .string()
    .regex(/^[0-9.]{1,12}(ms|μs|µs|s)$/)
    .optional(),
  mtu: z.int().min(0).max(65_535).optional(),
  peerEndpoint: Endpoint.optional(),
  lastHandshakeTime: z.iso.datetime({ offset: true }).optional(),
  packetLoss: z.int().min(0).max(100).optional(),
});

/** Why something is not so, in the agent's words. */
export interface Reason {
  readonly reason: string;
  readonly message: string;
}

export interface EndReport {
  /** Absent: there is none. */
  readonly gatewayKind?: string;
  readonly candidates: readonly string[];
  readonly key?: string;
  readonly connection?: ConnectionReport;
  /** By which ranges this side knows the other; only once they are granted. */
  readonly remote?: { readonly pod: readonly string[]; readonly external: readonly string[] };
  readonly isConfigured: boolean;
  readonly configuration?: Reason;
  readonly gateway?: Reason;
}

/** `peer`: the cluster at the other end, whose name all objects of the link have. */
export function readEnd(set: ObservedSet | undefined, peer: string): EndReport {
  const find = (kind: string, name: string) =>
    set?.objects.find((o) => o.kind === kind && o.name === name && !o.deleting);
  const gatewayObject = find('GatewayServer', peer) ?? find('GatewayClient', peer);
  const gateway = GatewayData.safeParse(gatewayObject?.data);
  const key = KeyData.safeParse(find('Secret', networkName.gateway(peer))?.data);
  const connection = ConnectionData.safeParse(find('Connection', networkName.gateway(peer))?.data);
  const lacking = gateway.success ? gateway.data.conditions.find(({ status }) => status === 'False') : undefined;
  return {
    ...(gatewayObject ? { gatewayKind: gatewayObject.kind } : {}),
    candidates: gateway.success ? candidatesOf(gateway.data) : [],
    ...(key.success ? { key: key.data.publicKey } : {}),
    ...(connection.success ? { connection: asConnection(connection.data) } : {}),
    ...(lacking ? { gateway: reasonOf(lacking) } : {}),
    ...configurationOf(find('Configuration', peer)),
  };
}

function configurationOf(
  object: ObservedSet['objects'][number] | undefined,
): Pick<EndReport, 'isConfigured' | 'configuration' | 'remote'> {
  const parsed = ConfigurationData.safeParse(object?.data);
  if (!object || !parsed.success) return { isConfigured: false };
  const { conditions, remote } = parsed.data;
  const configured = conditions.find(({ type }) => type === networkCidrsConfigured);
  const current = (configured?.observedGeneration ?? object.generation) === object.generation;
  if (configured?.status === 'True' && current && remote) return { isConfigured: true, remote: remote.cidr };
  return { isConfigured: false, ...(configured && current ? { configuration: reasonOf(configured) } : {}) };
}

const reasonOf = ({ reason = '', message = '' }: z.infer<typeof Condition>): Reason => ({ reason, message });

/** What the gateway's controller says, else what every client is told. */
function candidatesOf({ candidates, endpoint }: z.infer<typeof GatewayData>): readonly string[] {
  if (candidates.length > 0) return candidates;
  const ports = endpoint?.port === undefined ? (endpoint?.ports ?? []) : [endpoint.port];
  const texts = (endpoint?.addresses ?? []).flatMap((address) => ports.map((port) => `${address}:${port}`));
  return texts.filter((text) => Endpoint.safeParse(text).success);
}

function asConnection({ value, ...rest }: z.infer<typeof ConnectionData>): ConnectionReport {
  const known = (['Connected', 'Connecting', 'Error'] as const).find((one) => one === value);
  const told = Object.entries(rest).filter(([, one]) => one !== undefined);
  return { value: known ?? 'Unknown', ...(Object.fromEntries(told) as Omit<ConnectionReport, 'value'>) };
}
