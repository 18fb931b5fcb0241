/** What an installation can be told in a file: by `isthmus install --values` and `--set`. Pure. */
import * as z from 'zod';
import { profileNames } from '#cli/platform/profiles.ts';
import { credentialSettings } from '#shared/domain/credential-setting.ts';
import { nodeProcess } from '#shared/domain/network-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Cidr } from '#shared/schema/definition/addresses.ts';
import { ClusterId } from '#shared/schema/protocol/agent-protocol.ts';
import type { InstallFlags } from './install-flags.ts';
import { metricsAccess } from './metrics-manifests.ts';

const count = z.int().min(1);

export const InstallValues = z.strictObject({
  clusterId: ClusterId.optional().describe('Name of the cluster, by which peers know it.'),
  image: z.string().min(1).optional().describe('Image of the agent.'),
  apiServerUrl: z
    .string()
    .regex(/^https:\/\/\S+$/, 'must be https://HOST:PORT')
    .optional()
    .describe("How peers reach this cluster's API server."),
  replicas: count.optional().describe('Replicas of the agent.'),
  labels: z
    .record(z.string().regex(/^[^\s=,]+$/), z.string().regex(/^[^\s=,]*$/))
    .optional()
    .describe('Labels of the cluster for its peers.'),
  sharePercent: z
    .int()
    .min(0)
    .max(10_000)
    .optional()
    .describe('Most that all consumers together get, in percent of what the own pods of the cluster leave free.'),
  profile: z.enum(profileNames).optional().describe('Distribution of the cluster.'),
  nodeProcess: z
    .enum(nodeProcess)
    .optional()
    .describe(
      'Where the work of nodes is done: in processes of their own, or, on a cluster of one node, by the agent.',
    ),
  credentials: z.enum(credentialSettings).optional().describe('What consumers get to reach the API server.'),
  metrics: z
    .union([z.literal(false), z.enum(metricsAccess)])
    .optional()
    .describe('Serve metrics on every process; false: none.'),
  webhookCallers: z
    .array(Cidr)
    .optional()
    .describe('Ranges from which the API server calls the webhooks; others are refused by a NetworkPolicy.'),
  network: z
    .strictObject({
      enabled: z.boolean().optional().describe('Install the network between clusters.'),
      podCidrs: z.array(Cidr).optional().describe('Ranges of the pods.'),
      serviceCidr: Cidr.optional().describe('Range of the Services.'),
      externalCidr: Cidr.optional().describe(
        'Range by which peers reach what is no pod; another one for each cluster.',
      ),
      internalCidr: Cidr.optional().describe('Range of the addresses between nodes and gateways.'),
      reservedSubnets: z.array(Cidr).optional().describe('Ranges that peers must never get here.'),
      gatewayReplicas: count.optional().describe('Pods of each gateway, one active.'),
      fullMasquerade: z.boolean().optional().describe('Pods reach peers by the address of their node.'),
    })
    .optional(),
});
export type InstallValues = z.infer<typeof InstallValues>;

/** `source`: the file or option, for people. Fails with `invalid_input` that names each field that is refused. */
export function parseValues(values: unknown, source: string): InstallValues {
  const parsed = InstallValues.safeParse(values ?? {});
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ field: [...issue.path, key].join('.'), message: 'there is no such value' }))
      : [{ field: issue.path.join('.'), message: issue.message }],
  );
  const said = errors.map(({ field, message }) => `${field || 'the file'}: ${message}`).join('; ');
  throw new AppError('invalid_input', `${source} is refused: ${said}`, {
    detail: { field: errors[0]?.field, errors, remedy: 'docs/platforms.md lists what there is' },
  });
}

type Tree = { [key: string]: unknown };

/** `network.podCidrs={10.0.0.0/16,10.1.0.0/16}` as helm writes it; later ones go before earlier ones. */
export function withSettings(values: unknown, settings: readonly string[]): unknown {
  const result = structuredClone(values ?? {}) as Tree;
  for (const setting of settings) {
    const equals = setting.indexOf('=');
    if (equals <= 0) {
      throw new AppError('invalid_input', `--set is ${JSON.stringify(setting)}, accepted is NAME=VALUE`, {
        detail: { field: 'set', value: setting },
      });
    }
    const path = setting.slice(0, equals).split('.');
    const last = path.pop() as string;
    let at = result;
    for (const key of path) {
      const next = Object.hasOwn(at, key) ? at[key] : undefined;
      const inner: Tree = typeof next === 'object' && next !== null && !Array.isArray(next) ? (next as Tree) : {};
      define(at, key, inner);
      at = inner;
    }
    define(at, last, scalarOf(setting.slice(equals + 1)));
  }
  return result;
}

/** Also of `__proto__`, which the schema then refuses by its name. */
const define = (tree: Tree, key: string, value: unknown): void =>
  void Object.defineProperty(tree, key, { value, enumerable: true, configurable: true, writable: true });

function scalarOf(text: string): unknown {
  const list = /^\{(.*)\}$/.exec(text)?.[1];
  if (list !== undefined) return list === '' ? [] : list.split(',').map((one) => scalarOf(one.trim()));
  if (text === 'true' || text === 'false') return text === 'true';
  return /^(0|-?[1-9]\d*)$/.test(text) ? Number(text) : text;
}

export type ValueFlags = Partial<Omit<InstallFlags, 'kubeconfig' | 'timeout' | 'ignoreCheck'>> & {
  readonly clusterId?: string;
};

/** The same said as options. */
export function flagsOf({ network, ...values }: InstallValues): ValueFlags {
  const { enabled, podCidrs, reservedSubnets, ...ranges } = network ?? {};
  const flags = {
    ...values,
    ...ranges,
    network: enabled,
    podCidr: podCidrs,
    reservedSubnet: reservedSubnets,
  };
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined)) as ValueFlags;
}
