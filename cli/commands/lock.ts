/** isthmus lock: the keys by which the clusters of a tenant trust each other without the broker. */
import { Command, InvalidArgumentError } from 'commander';
import { openCluster } from '#cli/cluster/open.ts';
import { printedInstead } from '#cli/cluster/printed-instead.ts';
import { changeLock, holder, linkOf, signCluster, withKey, withoutKey } from '#cli/lock/cluster-lock.ts';
import { isLockKeyText, lockFile, newLockKey, ownLockKey, readLockKey } from '#cli/lock/lock-key.ts';
import type { CliIo } from '#cli/output/io.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { peeringLocks } from '#shared/schema/isthmus/peering-lock.ts';
import { changingKubeconfigOption, contextOption } from './kubeconfig-option.ts';
import { manifestOption } from './options.ts';

interface Target {
  readonly kubeconfig: string;
  readonly context?: string;
}

export const lockCommand = (io: CliIo): Command =>
  new Command('lock')
    .addCommand(showCommand(io))
    .addCommand(signCommand(io))
    .addCommand(trustCommand(io))
    .addCommand(distrustCommand(io))
    .addCommand(rotateCommand(io));

const onCluster = (command: Command): Command =>
  command.addOption(changingKubeconfigOption()).addOption(contextOption());

function publicLockKey(text: string): string {
  if (isLockKeyText(text)) return text;
  throw new InvalidArgumentError(
    'A lock key is 60 characters and begins with MCowBQYDK2VwAyEA; `isthmus lock show` prints yours.',
  );
}

const showCommand = (io: CliIo): Command =>
  new Command('show')
    .description('print your lock key, the half that others may know; one is made if you have none')
    .addHelpText(
      'after',
      `
The private half is in a file beside the login, of mode 0600. Back it up: it takes the place of every join that you would have to repeat.`,
    )
    .action(async () => {
      io.stdout.write(`${(await ownLockKey(io)).publicKey}\n`);
      io.stderr.write(`the private half is in ${lockFile(io)}\n`);
    });

const signCommand = (io: CliIo): Command =>
  onCluster(new Command('sign'))
    .description("sign a cluster's key with your lock key, as `isthmus join` does")
    .addHelpText(
      'after',
      `
The cluster then trusts what your key signs for clusters of its tenant, and they trust it. Run it on each cluster after
\`isthmus lock rotate\`, after \`isthmus rotate-key\`, and when your lock key was lost.`,
    )
    .action(async (options: Target) => {
      const kube = await openCluster(options, io);
      const { tenant, clusterId } = await linkOf(kube);
      const fingerprint = await signCluster(kube, {
        tenant,
        clusterId,
        lock: await ownLockKey(io),
        holder: holder(),
        at: io.clock.now(),
      });
      if (fingerprint === undefined)
        throw new AppError('not_found', `cluster ${clusterId} has no key pair yet`, {
          detail: { remedy: 'wait until its agent runs: it makes the pair' },
        });
      io.stdout.write(`key ${fingerprint} of ${clusterId} is signed for tenant ${tenant}\n`);
    });

interface KeyOptions extends Target {
  readonly tenant?: string;
  readonly output?: 'json' | 'yaml';
}

const keyCommand = (io: CliIo, name: 'trust' | 'distrust', description: string, after: string): Command =>
  onCluster(new Command(name))
    .description(description)
    .argument('<key>', 'a lock key, as `isthmus lock show` prints it', publicLockKey)
    .option('--tenant <name>', "whose clusters that key vouches for (default: the cluster's own tenant)")
    .addOption(manifestOption())
    .addHelpText('after', `\n${after}`)
    .action(async (key: string, options: KeyOptions) => {
      const kube = printedInstead(io, options.output, await openCluster(options, io));
      const tenant = options.tenant ?? (await linkOf(kube)).tenant;
      await changeLock(kube, tenant, (spec) => (name === 'trust' ? withKey(spec, key) : withoutKey(spec, key)));
      if (options.output !== undefined) return;
      const locks = await kube.list(peeringLocks);
      const left = locks.find(({ metadata }) => metadata.name === tenant)?.spec.keys.length ?? 0;
      io.stdout.write(
        `${left} lock key${left === 1 ? '' : 's'} of tenant ${tenant} ${left === 1 ? 'is' : 'are'} trusted\n`,
      );
    });

const trustCommand = (io: CliIo): Command =>
  keyCommand(
    io,
    'trust',
    'let a cluster trust the clusters that the lock key of another administrator signs',
    'With --tenant, of another tenant: that is how clusters of two tenants come to trust each other. Run it on both sides.',
  );
const distrustCommand = (io: CliIo): Command =>
  keyCommand(
    io,
    'distrust',
    'let a cluster forget a lock key',
    'Peers whose key is known already stay known; `kubectl delete trustedpeer NAME` forgets one.',
  );

const rotateCommand = (io: CliIo): Command =>
  new Command('rotate')
    .description('make a new lock key in place of the former one')
    .addHelpText(
      'after',
      `
Then run \`isthmus lock sign\` on each cluster, and after that \`isthmus lock distrust FORMER\` on each. Peers that know each other stay so.`,
    )
    .action(async () => {
      const former = await readLockKey(io);
      const next = await newLockKey(io);
      io.stdout.write(`${next.publicKey}\n`);
      if (former !== undefined) io.stderr.write(`the former key was ${former.publicKey}\n`);
      io.stderr.write('sign each cluster by the new key: isthmus lock sign --kubeconfig FILE\n');
    });
