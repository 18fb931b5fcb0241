/** What the agent's ServiceAccount asked of an API server, by the server's own audit log: which rights it used, and which it lacked. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type Asked, askedIn, auditLog } from '#test/testbed/asked-rights.ts';

export const askedBy = (log: string, username: string, sinceMs: number): Asked[] =>
  log
    .split('\n')
    .flatMap(askedIn)
    .filter(({ account, atMs }) => account === username && atMs >= sinceMs);

/** Rights that were refused and not granted later in the same namespace: where the agent works it has them a moment after the namespace appears. */
export function lacking(asked: readonly Asked[]): string[] {
  const key = ({ right, namespace }: Asked): string => `${right} in ${namespace || 'the cluster'}`;
  const last = new Map(asked.map((one) => [key(one), one.granted]));
  return [...last].flatMap(([name, granted]) => (granted ? [] : [name])).sort();
}

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly verbs: readonly string[];
}

/** Rights of these rules that were never asked for. */
export function unused(rules: readonly Rule[], asked: readonly Asked[]): string[] {
  const used = new Set(asked.map(({ right }) => right));
  const all = rules.flatMap(({ apiGroups = [], resources = [], verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((what) => verbs.map((verb) => `${verb} ${group === '' ? '' : `${group}/`}${what}`)),
    ),
  );
  return all.filter((right) => !used.has(right)).sort();
}

const agentUser = 'system:serviceaccount:liqo:isthmus-agent';

/** Of the server whose folder is `dir`. */
export const readAsked = async (dir: string, sinceMs: number): Promise<Asked[]> =>
  askedBy(await readFile(path.join(dir, auditLog), 'utf8'), agentUser, sinceMs);
