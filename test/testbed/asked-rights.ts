/** What accounts asked of an API server, by the server's own audit log, and the short record of it that outlives the server. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { name, systemNamespace } from '#shared/domain/liqo-keys.ts';

/** In the folder of the control plane. */
export const auditLog = 'audit.log';
/** The log, and its older part where it grew beyond its limit. */
const anyAuditLog = /^audit[-\w.]*\.log$/;

/** Folder for the records of all API servers of a run. Absent: none are kept. */
export const rightsVariable = 'ISTHMUS_USED_RIGHTS';

interface AuditEvent {
  readonly verb: string;
  readonly requestReceivedTimestamp: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** One right that one request needed. */
export interface Asked {
  readonly account: string;
  /** `verb group/resource`. */
  readonly right: string;
  /** A namespace, or '' for the whole cluster. */
  readonly namespace: string;
  readonly granted: boolean;
  /** By which role it was granted, where RBAC says so. */
  readonly role?: string;
  readonly atMs: number;
}

/** Undefined: the line was cut off when its server was killed, also where the next server in that folder wrote on behind it. */
function eventIn(line: string): AuditEvent | undefined {
  try {
    return JSON.parse(line) as AuditEvent;
  } catch {
    return undefined;
  }
}

/** Lines that hold no event and requests for no object need none. */
export function askedIn(line: string): readonly Asked[] {
  const event = eventIn(line);
  if (event === undefined) return [];
  const { verb, user, objectRef, annotations = {}, responseStatus, requestReceivedTimestamp } = event;
  const { apiGroup = '', resource, subresource, namespace = '' } = objectRef ?? {};
  if (resource === undefined) return [];
  const what = `${apiGroup === '' ? '' : `${apiGroup}/`}${resource}${subresource === undefined ? '' : `/${subresource}`}`;
  const role = /Role "([^"]+)" to /.exec(annotations['authorization.k8s.io/reason'] ?? '')?.[1];
  const one = {
    account: user.username,
    namespace,
    granted: annotations['authorization.k8s.io/decision'] === 'allow',
    ...(role === undefined ? {} : { role }),
    atMs: Date.parse(requestReceivedTimestamp),
  };
  // An apply that makes the object needs the right to create it, too; the log has the verb of the request only.
  const also = verb !== 'create' && responseStatus?.code === 201 ? [{ ...one, right: `create ${what}` }] : [];
  return [{ ...one, right: `${verb} ${what}` }, ...also];
}

/** Where a right was used: in the whole cluster, in the namespace of the agent, in those of its peers, in any other. */
export type Place = 'cluster' | 'system' | 'tenants' | 'other';

export function placeOf(namespace: string): Place {
  if (namespace === '') return 'cluster';
  if (namespace === systemNamespace) return 'system';
  return namespace.startsWith(name.tenantNamespace('')) ? 'tenants' : 'other';
}

interface UsedRight {
  readonly account: string;
  readonly role: string;
  readonly right: string;
  readonly place: Place;
}

const recordOf = ({ account, role = '', right, namespace }: Asked): string =>
  [account, role, right, placeOf(namespace)].join('\t');

/** Before the folder of a control plane is removed. Without the variable, or without a log, it does nothing. */
export async function keepUsedRights(dir: string): Promise<void> {
  const folder = process.env[rightsVariable];
  if (folder === undefined) return;
  const files = (await readdir(dir).catch(() => [])).filter((file) => anyAuditLog.test(file));
  const records = new Set<string>();
  for (const file of files) {
    // A stream behind node:readline would answer a file that is gone by an error event that nothing hears, and so end this process.
    const log = await open(path.join(dir, file));
    for await (const line of log.readLines()) {
      for (const asked of askedIn(line)) if (asked.granted) records.add(recordOf(asked));
    }
  }
  if (records.size === 0) return;
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, `${randomUUID()}.txt`), [...records].sort().join('\n'));
}

/** Of all API servers whose records are in the folder. */
export async function readUsedRights(
  folder: string,
): Promise<{ readonly servers: number; readonly used: readonly UsedRight[] }> {
  const files = await readdir(folder).catch(() => []);
  const texts = await Promise.all(files.map((file) => readFile(path.join(folder, file), 'utf8')));
  const lines = new Set(texts.flatMap((text) => text.split('\n')));
  const used = [...lines].map((line) => {
    const [account = '', role = '', right = '', place = 'cluster'] = line.split('\t');
    return { account, role, right, place: place as Place };
  });
  return { servers: files.length, used };
}
