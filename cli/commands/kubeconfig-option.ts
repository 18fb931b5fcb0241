/** `--kubeconfig` and `--context` of every command that works on one cluster, settled in one place before the command runs. */
import { type Command, Option } from 'commander';
import type { KubeTarget } from '#cli/cluster/kubeconfig-files.ts';
import type { CliIo } from '#cli/output/io.ts';

/** Its parsers are half of what a start would load, and help needs none. */
const files = () => import('#cli/cluster/kubeconfig-files.ts');

const searched = 'default: KUBECONFIG, then ~/.kube/config';

/** An option that is filled in as kubectl would; `changes`: the command says on which cluster it is about to act. */
class KubeconfigOption extends Option {
  constructor(
    flags: string,
    description: string,
    readonly contextKey: string,
    readonly changes: boolean,
  ) {
    super(flags, description);
  }
}

export interface KubeconfigUse {
  /** What it is the kubeconfig of. */
  readonly of?: string;
  readonly flag?: string;
  /** Attribute name of the option that names the context. */
  readonly contextKey?: string;
}

/** For commands that only read. */
export const kubeconfigOption = (use: KubeconfigUse = {}): Option => optionFor(use, false);
/** For commands that change the cluster. */
export const changingKubeconfigOption = (use: KubeconfigUse = {}): Option => optionFor(use, true);

const optionFor = (
  { of = 'the cluster', flag = 'kubeconfig', contextKey = 'context' }: KubeconfigUse,
  changes: boolean,
): Option => new KubeconfigOption(`--${flag} <file>`, `kubeconfig of ${of} (${searched})`, contextKey, changes);

export const contextOption = (): Option =>
  new Option('--context <name>', 'context in the kubeconfig (default: the current one)');

/** Fills in what was not said, and says on stderr which cluster a change goes to. For a `preAction` hook. */
export async function settleKubeconfig(io: CliIo, command: Command): Promise<void> {
  for (const option of command.options) {
    if (!(option instanceof KubeconfigOption)) continue;
    const key = option.attributeName();
    const { findKubeconfig } = await files();
    const { kubeconfig, source } = findKubeconfig(command.getOptionValue(key) as string | undefined, io);
    command.setOptionValueWithSource(key, kubeconfig, source === '--kubeconfig' ? 'cli' : 'env');
    if (!option.changes) continue;
    const context = command.getOptionValue(option.contextKey) as string | undefined;
    const from = source === '--kubeconfig' ? kubeconfig : source === 'KUBECONFIG' ? `KUBECONFIG ${kubeconfig}` : source;
    await announceCluster(io, { kubeconfig, context }, from);
  }
}

/** Says on stderr which cluster a command is about to change. */
export async function announceCluster(io: CliIo, target: KubeTarget, from: string): Promise<void> {
  const { loadKubeconfig } = await files();
  const { context, server } = await loadKubeconfig(target);
  io.stderr.write(`acting on context ${context} at ${server}, from ${from}\n`);
}
