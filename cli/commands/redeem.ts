/** isthmus redeem: use an invitation of another tenant. */
import { Command } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import { openCluster } from '#cli/cluster/open.ts';
import { checkVoucher, readCode, takeVoucher } from '#cli/lock/invitation-code.ts';
import { ownLockKey } from '#cli/lock/lock-key.ts';
import type { CliIo } from '#cli/output/io.ts';
import { arrow } from '#cli/peerings/follow.ts';
import { AppError } from '#shared/errors/app-error.ts';
import {
  askedResources,
  clusterName,
  type ResourceOptions,
  resourceOptions,
  timeoutMsOf,
  timeoutOption,
  waitEventsOption,
  wantsEvents,
} from './options.ts';
import { follow } from './peer.ts';

interface RedeemOptions extends ResourceOptions {
  readonly class?: string;
  readonly kubeconfig?: string;
  readonly wait?: boolean;
  readonly timeout: string;
  readonly output?: 'json';
}

export const redeemCommand = (io: CliIo): Command =>
  resourceOptions(new Command('redeem'), 'to ask for')
    .argument('<code>', 'the code, isi_…; - reads it from standard input')
    .argument('<consumer>', 'your cluster that gets the node', clusterName)
    .option('--class <name>', 'resource class; default: the first of the invitation')
    .option('--kubeconfig <file>', 'of your cluster: it then trusts the lock key in the code')
    .option('--wait', 'wait until the node is Ready, showing what happens')
    .addOption(waitEventsOption())
    .addOption(timeoutOption('3m'))
    .addHelpText(
      'after',
      `
What is not asked for is asked for up to the limits of the invitation. Either tenant ends the peering with isthmus unpeer.
Clusters of two tenants trust each other once each has the lock key of the other's administrator. That of the inviting tenant is in the code;
yours is printed with the line that the inviting tenant runs.`,
    )
    .action((code: string, consumer: string, options: RedeemOptions) => redeem(io, code, consumer, options));

async function redeem(io: CliIo, given: string, consumer: string, options: RedeemOptions): Promise<void> {
  const events = wantsEvents(options);
  const code = given === '-' ? await io.readStdin() : given;
  if (code.trim() === '') throw new AppError('invalid_input', 'no code came from standard input');
  const { code: brokersPart, voucher } = readCode(code);
  await withBroker(io, async (broker) => {
    const kube =
      voucher === undefined || options.kubeconfig === undefined
        ? undefined
        : await openCluster({ kubeconfig: options.kubeconfig }, io);
    if (kube !== undefined && voucher !== undefined) await checkVoucher(kube, consumer, voucher);
    const peering = await broker.api.redeemInvitation(
      {
        body: {
          code: brokersPart,
          consumer,
          resources: askedResources(options),
          ...(options.class !== undefined && { class: options.class }),
        },
      },
      { repeatable: true },
    );
    // A code that the broker refuses must leave no trust behind.
    if (kube !== undefined && voucher !== undefined) {
      await takeVoucher(kube, consumer, voucher, peering.across?.peerTenant);
      io.stderr.write(`${consumer} trusts clusters of tenant ${voucher.tenant} that lock key ${voucher.key} signed\n`);
    }
    if (voucher !== undefined) {
      const [lock, { tenant }] = await Promise.all([ownLockKey(io), broker.api.getMe()]);
      if (options.kubeconfig === undefined)
        io.stderr.write(
          `let ${consumer} trust ${voucher.tenant}: isthmus lock trust ${voucher.key} --tenant ${voucher.tenant} --kubeconfig FILE\n`,
        );
      io.stderr.write(
        `tell ${voucher.tenant} to run, on ${peering.provider}: isthmus lock trust ${lock.publicKey} --tenant ${tenant} --kubeconfig FILE\n`,
      );
    }
    if (!options.wait) {
      io.stdout.write(`peering ${arrow(peering)} (${peering.id}) is ${peering.phase}: ${peering.waitingFor}\n`);
      io.stderr.write(`follow it with: isthmus describe peering ${consumer} ${peering.provider}\n`);
      return;
    }
    const ended = await follow(io, broker, peering, { timeoutMs: timeoutMsOf(options), until: 'Ready', events });
    if (!events) io.stdout.write(`peering ${arrow(ended)} is Ready: node ${ended.nodeName} in ${consumer}\n`);
  });
}
