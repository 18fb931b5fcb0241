/** Reads two clusters and writes what each needs to be peered with the other. */
import type { X509Certificate } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import * as yaml from 'yaml';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import { controlPlaneGroup, name } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createKeyAndRequest, signedByCluster } from './client-certificate.ts';
import { type ClusterFacts, readClusterFacts } from './cluster-facts.ts';
import { kubeconfigText } from './kubeconfig.ts';
import { type Half, type LinkPlan, peeringManifests } from './manifests.ts';
import { readSealingCertificate, sealSecret } from './seal.ts';
import { createGatewayKeys } from './wireguard-keys.ts';

export interface PeeringOptions {
  readonly consumer: string;
  readonly provider: string;
  readonly consumerContext?: string;
  readonly providerContext?: string;
  readonly out: string;
  readonly network: boolean;
  readonly server: 'consumer' | 'provider';
  readonly serverType: 'NodePort' | 'LoadBalancer';
  readonly serverAddress: readonly string[];
  readonly nodePort: number;
  readonly loadBalancerIp?: string;
  readonly mtu: number;
  readonly slice?: string;
  readonly class: string;
  readonly lifetime: number;
  readonly sealConsumer?: string;
  readonly sealProvider?: string;
  readonly cpu?: string;
  readonly memory?: string;
  readonly pods?: string;
  readonly resource: Readonly<Record<string, string>>;
}

const certificateOption = async (file: string | undefined, option: string): Promise<X509Certificate | undefined> =>
  file === undefined ? undefined : readSealingCertificate(file, option);

export async function generatePeering(io: CliIo, options: PeeringOptions): Promise<void> {
  const sealing = {
    consumer: await certificateOption(options.sealConsumer, '--seal-consumer'),
    provider: await certificateOption(options.sealProvider, '--seal-provider'),
  };
  const progress = createProgress(io);
  const target = (kubeconfig: string, context: string | undefined) => openCluster({ kubeconfig, context }, io);
  const consumerKube = await target(options.consumer, options.consumerContext);
  const providerKube = await target(options.provider, options.providerContext);
  const consumer = await during(progress, 'consumer', () => readClusterFacts(consumerKube, 'consumer'));
  const provider = await during(progress, 'provider', () => readClusterFacts(providerKube, 'provider'));
  if (consumer.id === provider.id) {
    throw new AppError('invalid_input', `both kubeconfigs lead to clusters with the ID ${consumer.id}`, {
      detail: { field: 'provider', value: provider.id, remedy: 'name two clusters, each with an ID of its own' },
    });
  }
  const link = options.network ? linkOf(options, consumer, provider) : undefined;
  const kubeconfig = await during(progress, 'credentials', () =>
    credentials(io, providerKube, consumer.id, provider, options.lifetime),
  );
  const { cpu, memory, pods } = options;
  const halves = peeringManifests({
    consumer,
    provider,
    ...(link === undefined ? {} : { link }),
    kubeconfig,
    user: consumer.id,
    slice: {
      name: options.slice ?? provider.id,
      class: options.class,
      resources: {
        ...options.resource,
        ...(cpu === undefined ? {} : { cpu }),
        ...(memory === undefined ? {} : { memory }),
        ...(pods === undefined ? {} : { pods }),
      },
    },
  });
  for (const [side, facts] of [
    ['consumer', consumer],
    ['provider', provider],
  ] as const) {
    const folder = path.join(options.out, facts.id);
    const written = await writeHalf(folder, halves[side], sealing[side]);
    for (const file of written) io.stdout.write(`${file}\n`);
    if (sealing[side] === undefined && halves[side].secrets.length > 0)
      progress.note(`${path.join(folder, 'secrets.yaml')} holds private keys in clear: keep it out of Git`);
  }
}

function linkOf(options: PeeringOptions, consumer: ClusterFacts, provider: ClusterFacts): LinkPlan {
  for (const [role, { id, podCidrs, externalCidrs }] of Object.entries({ consumer, provider })) {
    if (podCidrs.length > 0 && externalCidrs.length > 0) continue;
    throw new AppError('not_found', `the ${role} ${id} has no ranges for its pods and its external addresses yet`, {
      detail: {
        field: role,
        remedy:
          'wait until its agent has granted them (kubectl get networks.ipam.liqo.io -n liqo), or use --no-network',
      },
    });
  }
  const { serverType: serviceType, server, nodePort, loadBalancerIp, mtu } = options;
  const nodes = (server === 'consumer' ? consumer : provider).nodeAddresses;
  const byDefault = serviceType === 'NodePort' ? nodes : loadBalancerIp === undefined ? [] : [loadBalancerIp];
  const addresses = options.serverAddress.length > 0 ? options.serverAddress : byDefault;
  if (addresses.length === 0) {
    throw new AppError('invalid_input', `the address of the ${server}'s gateway is unknown`, {
      detail: {
        field: 'server-address',
        remedy: 'say it: --server-address HOST, or --load-balancer-ip ADDRESS with --server-type LoadBalancer',
      },
    });
  }
  return {
    server,
    serviceType,
    addresses,
    ...(serviceType === 'NodePort' ? { nodePort } : {}),
    ...(serviceType === 'LoadBalancer' && loadBalancerIp !== undefined ? { loadBalancerIp } : {}),
    mtu,
    keys: { consumer: createGatewayKeys(), provider: createGatewayKeys() },
  };
}

/** The consumer's control plane as a user of the provider; its name and group are those of a peering with a handshake. */
async function credentials(
  io: CliIo,
  kube: KubeClient,
  consumer: string,
  { id, apiServer: server, ca }: ClusterFacts,
  lifetimeSeconds: number,
): Promise<string> {
  const { privateKey, request } = await createKeyAndRequest({ commonName: consumer, organization: controlPlaneGroup });
  const certificate = await signedByCluster(io, kube, request, {
    name: `isthmus-declared-${consumer}`,
    lifetimeSeconds,
  });
  const namespace = name.tenantNamespace(consumer);
  return kubeconfigText({
    cluster: id,
    user: consumer,
    server,
    ...(ca === undefined ? {} : { ca }),
    certificate,
    privateKey,
    namespace,
  });
}

const ownerOnly = 0o600;

/** File name to text: the folder that is applied to one cluster. */
export function filesOf({ objects, secrets }: Half, certificate?: X509Certificate): Readonly<Record<string, string>> {
  const documents = (all: readonly unknown[]): string => all.map((one) => yaml.stringify(one)).join('---\n');
  const sealed = certificate === undefined ? secrets : secrets.map((secret) => sealSecret(certificate, secret));
  const secretsFile = secrets.length > 0 ? { 'secrets.yaml': documents(sealed) } : {};
  return {
    'peering.yaml': documents(objects),
    ...secretsFile,
    'kustomization.yaml': yaml.stringify({
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      resources: ['peering.yaml', ...Object.keys(secretsFile)],
    }),
  };
}

async function writeHalf(folder: string, half: Half, certificate: X509Certificate | undefined): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const written: string[] = [];
  for (const [file, text] of Object.entries(filesOf(half, certificate))) {
    const target = path.join(folder, file);
    const isClear = file === 'secrets.yaml' && certificate === undefined;
    await writeFile(target, text, isClear ? { mode: ownerOnly } : {});
    // The mode above counts for new files only.
    if (isClear) await chmod(target, ownerOnly);
    written.push(target);
  }
  return written;
}
