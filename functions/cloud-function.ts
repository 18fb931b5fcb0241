/** A cloud function as the deployment sees it: its file, its trigger, its rights. */
import type { TableRights } from './table-rights.ts';

export type Access =
  /** GetItem, BatchGetItem, Query. */
  | 'table:read'
  /** PutItem, UpdateItem, DeleteItem, ConditionCheckItem. */
  | 'table:write'
  /** Serves one tenant at a time, in a session of its own role that is for this tenant: the other two are rights of that session. */
  | 'table:session'
  /** Reads the table's stream. */
  | 'stream:read'
  /** PutEvents on the bus. */
  | 'bus:publish'
  /** ManageConnections of the WebSocket API. */
  | 'channel:ring'
  /** The same, for the sockets of portals. */
  | 'listeners:tell'
  /** GetSecretValue of the keyring that tenants' secrets are sealed with. */
  | 'box:open'
  /** Posts to addresses that tenants chose. A right to nothing of ours. */
  | 'webhooks:post'
  /** AssumeRole of roles of tenants, by their name. */
  | 'event-targets:send';

export type Trigger =
  | { readonly kind: 'http'; readonly method: string; readonly path: string }
  /** What no route of the HTTP API matches. */
  | { readonly kind: 'no-route' }
  | { readonly kind: 'socket'; readonly route: '$connect' | '$disconnect' | '$default' }
  /** Records of the table's stream that pass the filter (Lambda's filter syntax). */
  | { readonly kind: 'stream'; readonly filter: Readonly<Record<string, unknown>> }
  /** Events of the bus that match (EventBridge's pattern syntax). */
  | { readonly kind: 'event'; readonly pattern: Readonly<Record<string, unknown>> }
  | { readonly kind: 'schedule'; readonly rate: string };

export interface CloudFunction {
  /** `api-peerings-create`, from its file. */
  readonly name: string;
  readonly file: string;
  readonly trigger: Trigger;
  readonly memoryMb: number;
  readonly timeoutSeconds: number;
  readonly access: readonly Access[];
  /** Where in the table. Empty without `table:read` and `table:write`. With `table:session`: in a session, for the tenant of the session. */
  readonly table: TableRights;
  /** With `table:session`: before it has a session, of all tenants. */
  readonly signIn: TableRights;
}
