/** isthmus doctor: one cause, what shows it, and what to do. */
import { Command, Option } from 'commander';
import { findKubeconfig, type KubeTarget } from '#cli/cluster/kubeconfig-files.ts';
import { exitCodes, exitOf } from '#cli/doctor/causes.ts';
import { diagnose, type Question } from '#cli/doctor/diagnose.ts';
import { diagnosisOf, diagnosisText } from '#cli/doctor/print.ts';
import { EndWith } from '#cli/output/failure.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printObject } from '#cli/output/print.ts';
import { createProgress } from '#cli/output/progress.ts';
import { paintFor } from '#cli/output/style.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { clusterName, timeoutMsOf, timeoutOption } from './options.ts';

interface DoctorOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly peerKubeconfig?: string;
  readonly peerContext?: string;
  readonly probe: boolean;
  readonly output: 'text' | 'json' | 'yaml';
  readonly timeout: string;
}

const exitText = exitCodes.map(({ area, exit }) => `${exit} ${area}`).join(', ');

export const doctorCommand = (io: CliIo): Command =>
  new Command('doctor')
    .argument('[consumer]', 'cluster that has the node', clusterName)
    .argument('[provider]', 'cluster that runs the pods', clusterName)
    .option('--kubeconfig <file>', 'kubeconfig of the consumer, or of the only cluster (default: as kubectl finds it)')
    .option('--context <name>', 'context in it (default: the current one)')
    .option('--peer-kubeconfig <file>', 'kubeconfig of the provider: both ends together show more')
    .option('--peer-context <name>', 'context in it (default: the current one)')
    .option('--no-probe', 'put no test pods into the clusters when nothing else is wrong')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'))
    .addOption(timeoutOption('45s'))
    .addHelpText(
      'after',
      `
Reads and tries, and changes nothing. With the kubeconfigs of both ends, and when nothing else is wrong, it makes the basic \`isthmus network
test\`, whose pods it removes. CONSUMER and PROVIDER name the peering that counts; where \`isthmus login\` was done, the broker is asked for it, too.
Ends with 0 when nothing is wrong, otherwise by the area of the cause: ${exitText}. docs/doctor.md lists the causes.

Examples:
  isthmus doctor --kubeconfig rome.kubeconfig
  isthmus doctor rome milan --kubeconfig rome.kubeconfig --peer-kubeconfig milan.kubeconfig`,
    )
    .action(async (consumer: string | undefined, provider: string | undefined, options: DoctorOptions) => {
      const question = questionOf(io, pairOf(consumer, provider), options);
      const { facts, findings } = await diagnose(io, createProgress(io), question);
      const diagnosis = diagnosisOf(facts, findings);
      if (options.output === 'text') io.stdout.write(diagnosisText(diagnosis, paintFor(io.stdout, io.env)));
      else printObject(io, options.output, diagnosis);
      if (diagnosis.cause !== undefined) throw new EndWith(exitOf(diagnosis.cause.code));
    });

function pairOf(consumer: string | undefined, provider: string | undefined): Question['pair'] {
  if (consumer === undefined) return undefined;
  if (provider !== undefined && provider !== consumer) return [consumer, provider];
  throw new AppError('invalid_input', `provider is ${provider ?? 'missing'}: accepted are two clusters, or none`, {
    detail: { field: 'provider', value: provider ?? '', remedy: `isthmus doctor ${consumer} PROVIDER` },
  });
}

function questionOf(io: CliIo, pair: Question['pair'], options: DoctorOptions): Question {
  const { context, peerKubeconfig, peerContext, probe } = options;
  const first = firstTarget(io, pair, options);
  const asked = options.kubeconfig !== undefined || context !== undefined;
  const second = secondTarget(first, peerKubeconfig, peerContext);
  return {
    places: [
      ...(first === undefined ? [] : [{ target: first, required: asked || pair === undefined }]),
      ...(second === undefined ? [] : [{ target: second, required: true }]),
    ],
    ...(pair !== undefined && { pair }),
    probe,
    timeoutMs: timeoutMsOf(options),
  };
}

/** Undefined: there is none, and the broker can be asked. */
function firstTarget(io: CliIo, pair: Question['pair'], options: DoctorOptions): KubeTarget | undefined {
  try {
    return { kubeconfig: findKubeconfig(options.kubeconfig, io).kubeconfig, context: options.context };
  } catch (error) {
    if (pair === undefined || codeOf(error) !== 'invalid_input') throw error;
    return undefined;
  }
}

/** Both contexts may be in one file. */
function secondTarget(
  first: KubeTarget | undefined,
  kubeconfig: string | undefined,
  context: string | undefined,
): KubeTarget | undefined {
  if (kubeconfig !== undefined) return { kubeconfig, context };
  return context === undefined || first === undefined ? undefined : { kubeconfig: first.kubeconfig, context };
}
