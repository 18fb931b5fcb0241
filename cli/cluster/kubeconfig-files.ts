/** Which kubeconfig a command uses, as kubectl decides it: the flag, then KUBECONFIG, then ~/.kube/config. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import type { CliIo } from '#cli/output/io.ts';
import { AppError } from '#shared/errors/app-error.ts';

export type KubeconfigSource = '--kubeconfig' | 'KUBECONFIG' | '~/.kube/config';

export interface FoundKubeconfig {
  /** One file, or several separated as in KUBECONFIG. */
  readonly kubeconfig: string;
  readonly source: KubeconfigSource;
}

const filesOf = (kubeconfig: string): string[] =>
  existsSync(kubeconfig) ? [kubeconfig] : kubeconfig.split(path.delimiter).filter((file) => file !== '');

/** Fails with `invalid_input` when nothing names a kubeconfig that exists. */
export function findKubeconfig(flag: string | undefined, { env, home }: Pick<CliIo, 'env' | 'home'>): FoundKubeconfig {
  if (flag !== undefined) return { kubeconfig: flag, source: '--kubeconfig' };
  const listed = env.KUBECONFIG ?? '';
  if (filesOf(listed).length > 0) return { kubeconfig: listed, source: 'KUBECONFIG' };
  const usual = path.join(home, '.kube', 'config');
  if (existsSync(usual)) return { kubeconfig: usual, source: '~/.kube/config' };
  throw new AppError('invalid_input', `no kubeconfig: KUBECONFIG is not set and ${usual} does not exist`, {
    detail: { field: 'kubeconfig', value: '', remedy: 'name one with --kubeconfig FILE, or set KUBECONFIG' },
  });
}

const unreadable = (kubeconfig: string, why: string, cause?: unknown) =>
  new AppError('invalid_input', `the kubeconfig ${kubeconfig} cannot be read: ${why}`, {
    cause,
    detail: { field: 'kubeconfig', value: kubeconfig, remedy: 'name a kubeconfig file with --kubeconfig FILE' },
  });

/**
 * Of several files, the first that names a cluster, user, context or current context counts, and files that do not exist are left out,
 * unless none does: client-node's own merge refuses a name that two files have. Fails with `invalid_input`, naming the file.
 */
export async function readKubeconfig(kubeconfig: string): Promise<KubeConfig> {
  // Loaded late: it is the heaviest import of the command line, and most commands talk to the broker alone.
  const { KubeConfig } = await import('@kubernetes/client-node');
  const files = filesOf(kubeconfig);
  const present = files.length > 1 ? files.filter((file) => existsSync(file)) : files;
  if (present.length === 0) throw unreadable(kubeconfig, 'none of the files exists');
  const loaded = present.map((file) => {
    const config = new KubeConfig();
    try {
      config.loadFromFile(file);
    } catch (cause) {
      throw unreadable(file, (cause as Error).message, cause);
    }
    return config;
  });
  const merged = new KubeConfig();
  merged.loadFromOptions({
    clusters: firstOfEach(loaded.flatMap((config) => config.clusters ?? [])),
    users: firstOfEach(loaded.flatMap((config) => config.users ?? [])),
    contexts: firstOfEach(loaded.flatMap((config) => config.contexts ?? [])),
    currentContext: loaded.map((config) => config.currentContext).find((name) => Boolean(name)) ?? '',
  });
  return merged;
}

function firstOfEach<T extends { readonly name: string }>(all: readonly T[]): T[] {
  const byName = new Map<string, T>();
  for (const one of all) if (!byName.has(one.name)) byName.set(one.name, one);
  return [...byName.values()];
}
