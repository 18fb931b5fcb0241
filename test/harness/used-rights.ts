/** What the agent's ServiceAccount asked of an API server, by the server's own audit log: which rights it used, and which it lacked. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { auditLog } from '#test/testbed/control-plane.ts';

interface AuditEvent {
  readonly stage: string;
  readonly verb: string;
  readonly requestReceivedTimestamp: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
  };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** `verb group/resource`, and where: a namespace, or '' for the whole cluster. */
export interface Asked {
  readonly right: string;
  readonly namespace: string;
  readonly granted: boolean;
}

export function askedBy(log: string, username: string, sinceMs: number): Asked[] {
  return log.split('\n').flatMap((line) => {
    if (line === '') return [];
    const { verb, user, objectRef, annotations, requestReceivedTimestamp } = JSON.parse(line) as AuditEvent;
    const { apiGroup = '', resource, subresource, namespace = '' } = objectRef ?? {};
    if (user.username !== username || resource === undefined) return [];
    if (Date.parse(requestReceivedTimestamp) < sinceMs) return [];
    const what = subresource === undefined ? resource : `${resource}/${subresource}`;
    const granted = annotations?.['authorization.k8s.io/decision'] === 'allow';
    return [{ right: `${verb} ${apiGroup === '' ? '' : `${apiGroup}/`}${what}`, namespace, granted }];
  });
}

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
