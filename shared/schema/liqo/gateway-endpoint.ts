/** Where gateways are reached, as several network kinds say it. */
import * as z from 'zod';
import { Ipv4, Port } from '../definition/addresses.ts';
import { LocalObjectReference } from '../definition/fields.ts';
import { type CelRule, cel } from '../definition/kind.ts';

const PortList = z.array(Port).max(64);

const lists = (endpoint: unknown): { port?: number; ports?: number[]; nodePort?: number; nodePorts?: number[] } =>
  endpoint as ReturnType<typeof lists>;

/** A rule once for zod and once for the API server. */
const rules: readonly { readonly holds: (endpoint: unknown) => boolean; readonly cel: CelRule }[] = [
  {
    holds: (e) => lists(e).port === undefined || lists(e).ports === undefined,
    cel: { rule: '!(has(self.port) && has(self.ports))', message: 'port and ports exclude each other' },
  },
  {
    holds: (e) => lists(e).port !== undefined || (lists(e).ports?.length ?? 0) > 0,
    cel: {
      rule: 'has(self.port) || (has(self.ports) && size(self.ports) > 0)',
      message: 'port, or ports with at least one entry, is required',
    },
  },
  {
    holds: (e) => distinct(lists(e).ports),
    cel: {
      rule: '!has(self.ports) || self.ports.all(p, self.ports.exists_one(q, q == p))',
      message: 'ports names one port twice',
    },
  },
];
const tcp = 'protocol is TCP: WireGuard speaks UDP, which is what is accepted (invalid_input)';
const udpOnly: (typeof rules)[number] = {
  holds: (e) => (e as { protocol?: string }).protocol !== 'TCP',
  cel: { rule: "!has(self.protocol) || self.protocol == 'UDP'", message: tcp },
};
const nodePortRules: typeof rules = [
  {
    holds: (e) => lists(e).nodePort === undefined || lists(e).nodePorts === undefined,
    cel: { rule: '!(has(self.nodePort) && has(self.nodePorts))', message: 'nodePort and nodePorts exclude each other' },
  },
  {
    holds: (e) => distinct(lists(e).nodePorts),
    cel: {
      rule: '!has(self.nodePorts) || self.nodePorts.all(p, self.nodePorts.exists_one(q, q == p))',
      message: 'nodePorts names one port twice',
    },
  },
];

const distinct = (ports: readonly number[] | undefined): boolean => new Set(ports).size === (ports?.length ?? 0);

const ruled = <T extends z.ZodType>(schema: T, all: typeof rules): T =>
  all
    .reduce<z.ZodType>((checked, { holds, cel: { message } }) => checked.refine(holds, message), schema)
    .meta(cel(...all.map((rule) => rule.cel))) as T;

export const EndpointStatus = ruled(
  z.object({
    addresses: z.array(z.string()).optional().describe('IP addresses or host names; the first one is dialled first.'),
    port: Port.optional(),
    ports: PortList.optional(),
    protocol: z.enum(['TCP', 'UDP']).optional(),
  }),
  [...rules, udpOnly],
);
export type EndpointStatus = z.infer<typeof EndpointStatus>;

export const ServerEndpoint = ruled(
  z.object({
    port: Port.optional().describe('Of the Service.'),
    ports: PortList.optional(),
    serviceType: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName']).default('ClusterIP'),
    nodePort: Port.optional().describe('Wanted one; by default Kubernetes picks.'),
    nodePorts: PortList.optional(),
    loadBalancerIP: z.string().optional(),
  }),
  [...rules, ...nodePortRules],
);
export type ServerEndpoint = z.infer<typeof ServerEndpoint>;

export const InternalEndpoint = z.object({
  ip: Ipv4.optional().describe('Of the active gateway pod.'),
  node: z.string().optional().describe('Node that runs it.'),
});
export type InternalEndpoint = z.infer<typeof InternalEndpoint>;

export const KeySecret = LocalObjectReference.optional().describe(
  'Secret with privateKey and publicKey, 32 bytes each; generated when no name is given.',
);
