/** Every cloud function, as data: what infrastructure deploys and the bundler bundles. HTTP functions come from their routes through `npm run gen`. */
import type { Access, CloudFunction, Trigger } from './cloud-function.ts';
import httpFunctions from './http-functions.json' with { type: 'json' };
import { outboxInsertions, patterns } from './runtime/bus-patterns.ts';
import { signInRights, type TableRights, tableRightsOf } from './table-rights.ts';

/** Reading needs writing too: signed requests are spent, uses of keys are counted. */
const readsAndWrites: readonly Access[] = ['table:read', 'table:write'];
const coordinates: readonly Access[] = [...readsAndWrites, 'channel:ring'];
const makesWebhooks: readonly Access[] = [...readsAndWrites, 'box:open', 'webhooks:post'];
const delivers: readonly Access[] = [...makesWebhooks, 'event-targets:send'];
const dispatches: readonly Access[] = ['stream:read', 'bus:publish', ...readsAndWrites, 'listeners:tell'];

/** Routes that make what webhooks sign with or look at where they post to, and those that no agent hears of. */
const unlikeOthers: Readonly<Record<string, readonly Access[]>> = {
  'PATCH /v1/clusters/{cluster}': readsAndWrites,
  'PATCH /v1/peerings/{peering}': readsAndWrites,
  'POST /v1/webhooks': makesWebhooks,
  'POST /v1/webhooks/{webhook}/rotate': [...readsAndWrites, 'box:open'],
  'PATCH /v1/webhooks/{webhook}': [...readsAndWrites, 'webhooks:post'],
};

/** Routes whose changes make an agent come and fetch. */
const ringing =
  /^\/v1\/(agent\/(enroll|observed)|clusters|peerings|requests|invitations|invitation-redemptions|tenant|tenants)\b/;

/** Of the routes for members of a tenant, those that read or write something of another one: that agreed, offered, asked or was asked. */
const acrossTenants = /^api-(directory|invitations|requests)-/;

const nameOf = (file: string): string =>
  file
    .replace(/^functions\//, '')
    .replace(/\.ts$/, '')
    .replaceAll('/', '-');

const entry = (
  file: string,
  trigger: Trigger,
  access: readonly Access[],
  over: Partial<Pick<CloudFunction, 'memoryMb' | 'timeoutSeconds'>> & { readonly auth?: string } = {},
): CloudFunction => {
  const { auth, ...limits } = over;
  const name = nameOf(file);
  const asked = {
    name,
    ...(trigger.kind === 'http' && { method: trigger.method }),
    ...(auth !== undefined && auth !== 'none' && { auth }),
    rings: access.includes('channel:ring'),
    inSession: access.includes('table:session'),
  };
  const none: TableRights = { read: [], write: [] };
  const table = access.includes('table:read') ? tableRightsOf(asked) : none;
  const signIn = access.includes('table:session') ? signInRights : none;
  return { name, file, trigger, memoryMb: 256, timeoutSeconds: 15, access, table, signIn, ...limits };
};

function httpEntry({ file, method, path, auth }: (typeof httpFunctions)[number]): CloudFunction {
  const agent = auth === 'agent' || auth === 'enroll';
  const usual = method !== 'GET' && ringing.test(path) ? coordinates : readsAndWrites;
  const needs = auth === 'none' ? [] : (unlikeOthers[`${method} ${path}`] ?? usual);
  const access =
    auth === 'key' && !needs.includes('channel:ring') && !acrossTenants.test(nameOf(file))
      ? [...needs, 'table:session' as const]
      : needs;
  // An HTTP API gives up after 30 s; long polls wait for 25 s at most.
  return entry(file, { kind: 'http', method, path }, access, { memoryMb: agent ? 256 : 512, timeoutSeconds: 29, auth });
}

const events = 'functions/events';
const onEvent = (name: string, pattern: keyof typeof patterns): CloudFunction =>
  entry(`${events}/${name}.ts`, { kind: 'event', pattern: patterns[pattern] }, coordinates, { timeoutSeconds: 30 });

/** `rows` as `npm run gen` writes them, which needs the catalogue of rows that it is just about to write. */
export const catalogueOf = (rows: typeof httpFunctions): readonly CloudFunction[] => [
  ...rows.map(httpEntry),
  entry('functions/api/no-route.ts', { kind: 'no-route' }, [], { timeoutSeconds: 5 }),
  // Peerings of an agent that is gone, or back from silence, are looked at, which may move them on.
  entry('functions/channel/connect.ts', { kind: 'socket', route: '$connect' }, coordinates),
  entry('functions/channel/message.ts', { kind: 'socket', route: '$default' }, coordinates),
  entry('functions/channel/disconnect.ts', { kind: 'socket', route: '$disconnect' }, coordinates),
  entry(`${events}/dispatch.ts`, { kind: 'stream', filter: outboxInsertions }, dispatches, { timeoutSeconds: 60 }),
  onEvent('peerings', 'peerings'),
  onEvent('cluster-left', 'clusterLeft'),
  entry(`${events}/webhooks.ts`, { kind: 'event', pattern: patterns.webhooks }, delivers, { timeoutSeconds: 60 }),
  entry('functions/schedule/sweep.ts', { kind: 'schedule', rate: 'rate(1 minute)' }, coordinates, {
    memoryMb: 512,
    // Below the rate: no two look at the same things, and what is left begins the next one.
    timeoutSeconds: 55,
  }),
];

export const cloudFunctions: readonly CloudFunction[] = catalogueOf(httpFunctions);
