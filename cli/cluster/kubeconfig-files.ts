/** Which kubeconfig a command uses, as kubectl decides it: the flag, then KUBECONFIG, then ~/.kube/config. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import * as yaml from 'yaml';
import * as z from 'zod';
import type { CliIo } from '#cli/output/io.ts';
import { AppError } from '#shared/errors/app-error.ts';

type KubeconfigSource = '--kubeconfig' | 'KUBECONFIG' | '~/.kube/config';

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

export interface KubeTarget {
  /** One file, or several separated as in KUBECONFIG. */
  readonly kubeconfig: string;
  readonly context?: string | undefined;
}

export interface LoadedKubeconfig {
  /** All files as one, with absolute names of the files that they name. */
  readonly text: string;
  /** The one that was asked for, or the current one. */
  readonly context: string;
  /** Names of all. */
  readonly contexts: readonly string[];
  /** URL of the API server of `context`, without a slash at its end. */
  readonly server: string;
}

/** Fails with `invalid_input` when a file cannot be read, and when it lacks the context or the context a cluster. */
export async function loadKubeconfig({ kubeconfig, context }: KubeTarget): Promise<LoadedKubeconfig> {
  const merged = readKubeconfig(kubeconfig);
  const contexts = merged.contexts.map(({ name }) => name);
  if (context !== undefined && !contexts.includes(context)) {
    throw new AppError(
      'invalid_input',
      `the kubeconfig ${kubeconfig} has no context ${JSON.stringify(context)}, it has ${contexts.join(', ') || 'none'}`,
      { detail: { field: 'context', value: context, accepted: contexts } },
    );
  }
  const chosen = context ?? merged['current-context'] ?? '';
  const clusterName = merged.contexts.find(({ name }) => name === chosen)?.context?.cluster;
  const server = merged.clusters.find(({ name }) => name === clusterName)?.cluster?.server;
  if (typeof server !== 'string') {
    throw new AppError('invalid_input', `the kubeconfig ${kubeconfig} names no cluster in its current context`, {
      detail: { field: 'kubeconfig', value: kubeconfig, remedy: 'choose a context with --context NAME' },
    });
  }
  const text = JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...merged });
  return { text, context: chosen, contexts, server: server.replace(/\/+$/, '') };
}

const fields = z.record(z.string(), z.unknown()).nullish();
const entries = <S extends z.ZodRawShape>(inner: S) => z.array(z.object({ name: z.string(), ...inner })).nullish();
const kubeconfigFile = z
  .object({
    clusters: entries({ cluster: fields }),
    users: entries({ user: fields }),
    contexts: entries({ context: fields }),
    'current-context': z.string().nullish(),
  })
  .nullable();
type KubeconfigFile = NonNullable<z.infer<typeof kubeconfigFile>>;
type Entries<K extends 'clusters' | 'users' | 'contexts'> = NonNullable<KubeconfigFile[K]>;

interface Merged {
  readonly clusters: Entries<'clusters'>;
  readonly users: Entries<'users'>;
  readonly contexts: Entries<'contexts'>;
  readonly 'current-context'?: string | undefined;
}

/**
 * Of several files, the first that names a cluster, user, context or current context counts, and files that do not exist are left out,
 * unless none does. Fails with `invalid_input`, naming the file.
 */
function readKubeconfig(kubeconfig: string): Merged {
  const files = filesOf(kubeconfig);
  const present = files.length > 1 ? files.filter((file) => existsSync(file)) : files;
  if (present.length === 0) throw unreadable(kubeconfig, 'none of the files exists');
  const loaded = present.map(readOne);
  return {
    clusters: firstOfEach(loaded.flatMap(({ clusters }) => clusters)),
    users: firstOfEach(loaded.flatMap(({ users }) => users)),
    contexts: firstOfEach(loaded.flatMap(({ contexts }) => contexts)),
    'current-context': loaded.map((one) => one['current-context']).find((name) => Boolean(name)),
  };
}

function readOne(file: string): Merged {
  let parsed: unknown;
  try {
    parsed = yaml.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw unreadable(file, (cause as Error).message, cause);
  }
  const checked = kubeconfigFile.safeParse(parsed);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    const where = issue?.path.join('.') ?? '';
    throw unreadable(file, `${where === '' ? '' : `${where}: `}${issue?.message}`, checked.error);
  }
  const { clusters, users, contexts, 'current-context': current } = checked.data ?? {};
  const directory = path.dirname(path.resolve(file));
  return {
    clusters: (clusters ?? []).map((one) => ({ ...one, cluster: absolute(one.cluster, directory) })),
    users: (users ?? []).map((one) => ({ ...one, user: absolute(one.user, directory) })),
    contexts: contexts ?? [],
    'current-context': current ?? undefined,
  };
}

const fileFields = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

/** File names in a kubeconfig are relative to it. */
function absolute(
  of: Readonly<Record<string, unknown>> | null | undefined,
  directory: string,
): Record<string, unknown> {
  const named = Object.entries(of ?? {}).map(([key, value]) =>
    fileFields.includes(key) && typeof value === 'string' && value !== ''
      ? [key, path.resolve(directory, value)]
      : [key, value],
  );
  return Object.fromEntries(named) as Record<string, unknown>;
}

function firstOfEach<T extends { readonly name: string }>(all: readonly T[]): T[] {
  const byName = new Map<string, T>();
  for (const one of all) if (!byName.has(one.name)) byName.set(one.name, one);
  return [...byName.values()];
}
