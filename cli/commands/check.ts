/** isthmus check: what installing in a cluster would meet, before anything is changed. */
import { Command } from 'commander';
import { openCluster } from '#cli/cluster/open.ts';
import { retryReads } from '#cli/cluster/retry.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printObject } from '#cli/output/print.ts';
import { paintFor, type Tone } from '#cli/output/style.ts';
import { table } from '#cli/output/table.ts';
import { type CheckReport, type Finding, stopsOf } from '#cli/preflight/findings.ts';
import type { CheckFlags } from '#cli/preflight/observe.ts';
import { check, refusalOf } from '#cli/preflight/preflight.ts';
import { checkOptions, rangeOptions } from './install-options.ts';
import { contextOption, kubeconfigOption } from './kubeconfig-option.ts';
import { reportOption } from './options.ts';

interface Flags extends CheckFlags {
  readonly output: 'table' | 'json' | 'yaml';
}

export const checkCommand = (io: CliIo): Command =>
  checkOptions(rangeOptions(new Command('check').addOption(kubeconfigOption()).addOption(contextOption())))
    .addOption(reportOption())
    .addHelpText(
      'after',
      `
Each check is ok; or adapted: the installation does something about it; or unknown until something runs there; or it stops, with the command
that mends it. \`join\` and \`install\` begin with the same checks. Ends with another exit code than 0 when one stops.

Example:
  isthmus check --kubeconfig rome.kubeconfig`,
    )
    .action(async (flags: Flags) => {
      const kube = retryReads(io, await openCluster(flags, io));
      const report = await check(io, kube, flags, { clusterId: undefined, remedy: (known) => `it is ${known}` });
      printReport(io, flags.output, report);
      const refusal = refusalOf(stopsOf(report.findings, flags.ignoreCheck));
      if (refusal !== undefined) throw refusal;
    });

const tones: Readonly<Record<Finding['outcome'], Tone>> = {
  ok: 'good',
  adapted: 'wait',
  unknown: 'faint',
  stop: 'bad',
};

export function printReport(io: Pick<CliIo, 'stdout' | 'env'>, format: Flags['output'], report: CheckReport): void {
  if (format !== 'table') {
    printObject(io, format, report);
    return;
  }
  const paint = paintFor(io.stdout, io.env);
  io.stdout.write(
    table(report.findings, [
      { head: 'check', cell: ({ check: name }) => name },
      { head: 'outcome', cell: ({ outcome }) => outcome, paint: (text, { outcome }) => paint(tones[outcome], text) },
      { head: 'finding', cell: ({ text }) => text },
    ]),
  );
}
