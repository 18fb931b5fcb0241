/** What was written at an API server, and by whom: from the server's own audit log with bodies. */
import { readFile } from 'node:fs/promises';
import type { ResourceType } from '#shared/domain/kube-object.ts';
import { kinds } from '../kinds.ts';

/** As it stands in the log, without what nothing here reads. */
export interface AuditObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
  };
  readonly spec?: unknown;
  readonly items?: readonly AuditObject[];
  /** Of a Status that answers a deletion: the object that is gone. */
  readonly details?: { readonly uid?: string };
}

/** One request that the server took. */
export interface Write {
  /** Name of the user, of the account, or of both for a certificate. */
  readonly user: string;
  readonly groups: readonly string[];
  /** Name of the program that sent it: `liqoctl`, `crd-replicator`. */
  readonly program: string;
  readonly verb: 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string | undefined;
  readonly request: AuditObject | undefined;
  readonly response: AuditObject | undefined;
  /** When the server received it, and when it had answered. */
  readonly at: string;
  readonly answeredAt: string;
}

const verbs: readonly string[] = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/** Bodies of what is written to the kinds of an exchange. `rest`: the rules for everything else, as the test bed has them. */
export function policyWithBodies(rest: { readonly rules: readonly object[] }): object {
  const groups = new Map<string, string[]>();
  for (const { group, plural } of kinds) groups.set(group, [...(groups.get(group) ?? []), plural, `${plural}/*`]);
  const resources = [...groups].map(([group, names]) => ({ group, resources: names }));
  return {
    ...rest,
    omitManagedFields: true,
    rules: [{ level: 'RequestResponse', verbs, resources }, ...rest.rules],
  };
}

interface Event {
  readonly stage: string;
  readonly verb: string;
  readonly user: { readonly username: string; readonly groups?: readonly string[] };
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly requestObject?: AuditObject;
  readonly responseObject?: AuditObject;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

function writeOf(event: Event): Write | undefined {
  const { verb, user, objectRef, responseStatus, stage, responseObject: response } = event;
  if (stage !== 'ResponseComplete' || !verbs.includes(verb) || (responseStatus?.code ?? 500) >= 300) return undefined;
  const type = kinds.find(
    ({ group, plural }) => group === (objectRef?.apiGroup ?? '') && plural === objectRef?.resource,
  );
  if (type === undefined) return undefined;
  return {
    user: user.username,
    groups: user.groups ?? [],
    program: (event.userAgent ?? '').split('/')[0] ?? '',
    verb: verb as Write['verb'],
    type,
    // Of a namespace the log has its own name there, except where it is created.
    namespace: type.namespaced ? (objectRef?.namespace ?? '') : '',
    name: objectRef?.name ?? response?.metadata?.name ?? '',
    subresource: objectRef?.subresource,
    request: event.requestObject,
    response,
    at: event.requestReceivedTimestamp,
    answeredAt: event.stageTimestamp,
  };
}

/** As they were answered, which is not their order: `inOrder` has that. */
export async function writesIn(file: string): Promise<readonly Write[]> {
  const text = await readFile(file, 'utf8');
  // The server may be in the middle of a line.
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line.includes('"level":"RequestResponse"'))
    .map((line) => writeOf(JSON.parse(line) as Event))
    .filter((write) => write !== undefined);
}
