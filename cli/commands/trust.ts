/** isthmus trust: agree inside a cluster to a peer, its key, or a peering with it. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { openCluster } from '#cli/cluster/open.ts';
import { printedInstead } from '#cli/cluster/printed-instead.ts';
import type { CliIo } from '#cli/output/io.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Fingerprint, type TrustedPeer, trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';
import type { PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { changingKubeconfigOption, contextOption } from './kubeconfig-option.ts';
import { clusterName, manifestOption } from './options.ts';

interface Options {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly fingerprint?: string;
  readonly tenant?: string;
  readonly as?: PeeringRole | 'both';
  readonly output?: 'json' | 'yaml';
}

function fingerprint(text: string): string {
  if (Fingerprint.safeParse(text).success) return text;
  throw new InvalidArgumentError('Accepted is sha256: and 64 hexadecimal digits.');
}

export const trustCommand = (io: CliIo): Command =>
  new Command('trust')
    .argument('<peer>', 'name of the other cluster', clusterName)
    .addOption(changingKubeconfigOption())
    .addOption(contextOption())
    .option('--fingerprint <sha256>', 'its key, as its administrator tells you', fingerprint)
    .option('--tenant <name>', 'its account at the broker: a cluster of that name of another account is refused')
    .addOption(
      new Option('--as <role>', 'what this cluster agrees to be in peerings with it').choices([
        'consumer',
        'provider',
        'both',
      ]),
    )
    .addOption(manifestOption())
    .addHelpText(
      'after',
      `
Needs no broker: it writes the TrustedPeer of that name, which Git may hold as well. \`kubectl get trustedpeers\` shows what waits for you.

Examples:
  isthmus trust milan --as consumer --kubeconfig rome.kubeconfig
  isthmus trust milan --fingerprint sha256:… --kubeconfig rome.kubeconfig`,
    )
    .action((peer: string, options: Options) => trust(io, peer, options));

async function trust(
  io: CliIo,
  peer: string,
  { fingerprint: key, tenant, as, output, ...target }: Options,
): Promise<void> {
  if (key === undefined && tenant === undefined && as === undefined) {
    throw new AppError('invalid_input', 'none of --fingerprint, --tenant and --as is given', {
      detail: { field: '--as', remedy: 'say what this cluster agrees to: a key, an account, a role' },
    });
  }
  const kube = printedInstead(io, output, await openCluster(target, io));
  const known = await kube.get<TrustedPeer>(trustedPeers, { name: peer });
  const roles = new Set<PeeringRole>(known?.spec?.consent ?? []);
  for (const role of as === 'both' ? (['consumer', 'provider'] as const) : as === undefined ? [] : [as])
    roles.add(role);
  const agreed = key ?? known?.spec?.fingerprint;
  const account = tenant ?? known?.spec?.tenant;
  const spec = {
    ...(agreed === undefined ? {} : { fingerprint: agreed }),
    ...(account === undefined ? {} : { tenant: account }),
    ...(roles.size === 0 ? {} : { consent: [...roles].sort() }),
  };
  await kube.apply(
    trustedPeers,
    { apiVersion: 'isthmus.dev/v1alpha1', kind: 'TrustedPeer', metadata: { name: peer }, spec } as TrustedPeer,
    `${fieldManager.agent}-cli`,
  );
  if (output !== undefined) return;
  const said = [
    ...(spec.fingerprint === undefined ? [] : [`by key ${spec.fingerprint}`]),
    ...(spec.tenant === undefined ? [] : [`of account ${spec.tenant}`]),
    ...(spec.consent === undefined ? [] : [`as ${spec.consent.join(' and ')}`]),
  ];
  io.stdout.write(`this cluster agrees to ${peer} ${said.join(', ')}\n`);
}
