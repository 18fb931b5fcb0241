/** Webhooks of a tenant: made, read, changed, rotated, deleted. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOp, eventOf } from '../audit/record.ts';
import type { ControlDeps, PageRequest } from '../deps.ts';
import { key, partition } from '../keys.ts';
import { pageOf } from '../pages.ts';
import { untilWritten } from '../peerings/coordinate.ts';
import { type Item, type Page, withPrefix } from '../ports/store.ts';
import {
  changeEvents,
  failingSince,
  forgetFailing,
  loadReceiver,
  maxReceivers,
  subjectOf,
  switched,
  webhookKind,
} from './receivers.ts';
import {
  liveSecrets,
  type SecretRecord,
  secretContext,
  type WebhookRecord,
  type WebhookView,
  webhookView,
} from './records.ts';
import { newWebhookSecret } from './signature.ts';
import { checkTypes } from './subscription.ts';

export interface NewWebhook {
  readonly url: string;
  /** `*`, types or groups of types. */
  readonly types: readonly string[];
  readonly description?: string;
}

export interface WebhookChange extends Partial<NewWebhook> {
  readonly enabled?: boolean;
}

export interface IssuedWebhook {
  readonly webhook: WebhookView;
  /** Shown once. */
  readonly secret: string;
}

export interface WebhookRegistry {
  create(caller: Caller, input: NewWebhook, signal?: AbortSignal): Promise<IssuedWebhook>;
  get(caller: Caller, id: string, signal?: AbortSignal): Promise<WebhookView>;
  list(caller: Caller, page?: PageRequest, signal?: AbortSignal): Promise<Page<WebhookView>>;
  change(
    caller: Caller,
    id: string,
    change: WebhookChange,
    options?: { readonly ifVersion?: number },
    signal?: AbortSignal,
  ): Promise<WebhookView>;
  /** What waits for it is dropped. */
  delete(caller: Caller, id: string, signal?: AbortSignal): Promise<WebhookView>;
  /** A new secret; the old one signs as well for so long. */
  rotate(caller: Caller, id: string, overlapSeconds: number, signal?: AbortSignal): Promise<IssuedWebhook>;
}

type Deps = Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'secretBox' | 'webhookSender'>;

/** More would make the header long; whoever rotates again and again loses the oldest. */
const maxSecrets = 3;

export const loadWebhook = (
  deps: Pick<Deps, 'store'>,
  tenant: string,
  id: string,
  signal?: AbortSignal,
): Promise<Item<WebhookRecord>> => loadReceiver<WebhookRecord>(deps, webhookKind, tenant, id, signal);

const ofTenant = (tenant: string) => ({
  partition: partition.webhooks(tenant),
  ...withPrefix(`${webhookKind.prefix}_`),
});

/** For logs and audit records: a URL may be as good as a password. */
const hostOf = (url: string): string => new URL(url).origin;

export function createWebhookRegistry(deps: Deps): WebhookRegistry {
  const { store, clock, ids } = deps;

  /** Throws `webhooks_unavailable`. */
  function means() {
    const { secretBox, webhookSender } = deps;
    if (!secretBox || !webhookSender) {
      throw new AppError('webhooks_unavailable', 'this broker has no webhooks: it has no key for their secrets');
    }
    return { secretBox, webhookSender };
  }

  function checkUrl(url: string): string {
    const refused = means().webhookSender.refusal(url);
    if (refused === undefined) return url;
    throw new AppError('url_refused', `url is refused: ${refused}`, {
      detail: { field: 'url', accepted: 'https://HOST[:PORT][/PATH][?QUERY] at a public address' },
    });
  }

  async function newSecret(tenant: string, webhook: string, signal?: AbortSignal) {
    const secret = newWebhookSecret(ids);
    const id = ids.next('ws');
    const sealedSecret = await means().secretBox.seal(secret, secretContext(tenant, webhook, id), signal);
    return { secret, record: { id, sealedSecret, createdAt: clock.now() } satisfies SecretRecord };
  }

  async function view(tenant: string, item: Item<WebhookRecord>, signal?: AbortSignal): Promise<WebhookView> {
    return webhookView(item, clock.now(), await failingSince(deps, tenant, item.value.id, signal));
  }

  function changed(value: WebhookRecord, { url, types, description, enabled }: WebhookChange): WebhookRecord {
    const { disabled: _, ...rest } = value;
    return {
      ...rest,
      ...(url === undefined ? {} : { url: checkUrl(url) }),
      ...(types === undefined ? {} : { types: checkTypes(types) }),
      ...(description === undefined ? {} : { description }),
      ...switched(value, enabled, clock.now()),
    };
  }

  /** What of a record may stand in the audit log. */
  const told = ({ url, types, description, disabled }: WebhookRecord) => ({
    host: hostOf(url),
    types,
    description,
    enabled: disabled === undefined,
  });

  const plain = ({ url, types, description }: WebhookRecord) => [url, types, description];

  return {
    async create(caller, input, signal) {
      mustHave(caller, 'webhooks:write');
      const { tenant } = caller;
      const id = ids.next('wh');
      const url = checkUrl(input.url);
      const types = checkTypes(input.types);
      const { items } = await store.query({ ...ofTenant(tenant), limit: maxReceivers }, signal);
      if (items.length >= maxReceivers) {
        throw new AppError('in_use', `a tenant has at most ${maxReceivers} webhooks; delete one first`, {
          detail: { limit: maxReceivers },
        });
      }
      const { secret, record } = await newSecret(tenant, id, signal);
      const webhook: WebhookRecord = {
        id,
        url,
        description: input.description ?? '',
        types,
        secrets: [record],
        createdAt: clock.now(),
        createdBy: caller.principal,
      };
      const subject = subjectOf(id);
      await store.transact(
        [
          { op: 'put', ...key.webhook(tenant, id), value: webhook },
          auditOp(deps, caller, { action: 'webhook.create', subject, after: told(webhook) }),
        ],
        [eventOf(deps, tenant, 'webhook.created', subject, { types })],
        signal,
      );
      return {
        webhook: webhookView({ ...key.webhook(tenant, id), value: webhook, version: 1 }, clock.now()),
        secret,
      };
    },

    async get(caller, id, signal) {
      mustHave(caller, 'webhooks:read');
      return view(caller.tenant, await loadWebhook(deps, caller.tenant, id, signal), signal);
    },

    async list(caller, page = {}, signal) {
      mustHave(caller, 'webhooks:read');
      const { tenant } = caller;
      return pageOf<WebhookRecord, WebhookView>(
        store,
        ofTenant(tenant),
        page,
        (item) => view(tenant, item, signal),
        signal,
      );
    },

    async change(caller, id, change, { ifVersion } = {}, signal) {
      mustHave(caller, 'webhooks:write');
      const { tenant } = caller;
      const item = await untilWritten(async () => {
        const before = await loadWebhook(deps, tenant, id, signal);
        if (ifVersion !== undefined && ifVersion !== before.version) {
          throw new AppError('precondition_failed', `webhook ${id} has version ${before.version}, not ${ifVersion}`);
        }
        const value = changed(before.value, change);
        const events = changeEvents(deps, tenant, { before: before.value, after: value, plain });
        if (events.length === 0) return before;
        const { pk, sk, version } = before;
        await store.transact(
          [
            { op: 'update', pk, sk, value, ifVersion: version },
            auditOp(deps, caller, {
              action: 'webhook.change',
              subject: subjectOf(id),
              before: told(before.value),
              after: told(value),
            }),
            // What failed before it was switched on again does not count against it.
            ...(before.value.disabled && !value.disabled ? await forgetFailing(deps, tenant, id, signal) : []),
          ],
          events,
          signal,
        );
        return { ...before, value, version: version + 1 };
      }, signal);
      return view(tenant, item, signal);
    },

    async delete(caller, id, signal) {
      mustHave(caller, 'webhooks:write');
      const { tenant } = caller;
      return untilWritten(async () => {
        const item = await loadWebhook(deps, tenant, id, signal);
        const { pk, sk, version } = item;
        await store.transact(
          [
            { op: 'delete', pk, sk, ifVersion: version },
            ...(await forgetFailing(deps, tenant, id, signal)),
            auditOp(deps, caller, { action: 'webhook.delete', subject: subjectOf(id), before: told(item.value) }),
          ],
          [eventOf(deps, tenant, 'webhook.deleted', subjectOf(id))],
          signal,
        );
        return webhookView(item, clock.now());
      }, signal);
    },

    async rotate(caller, id, overlapSeconds, signal) {
      mustHave(caller, 'webhooks:write');
      const { tenant } = caller;
      return untilWritten(async () => {
        const item = await loadWebhook(deps, tenant, id, signal);
        const { secret, record } = await newSecret(tenant, id, signal);
        const now = clock.now();
        const until = now + overlapSeconds * 1_000;
        const old = liveSecrets(item.value, now)
          .map((one) => ({ ...one, expiresAt: Math.min(one.expiresAt ?? until, until) }))
          .filter(({ expiresAt }) => expiresAt > now);
        const value: WebhookRecord = { ...item.value, secrets: [record, ...old].slice(0, maxSecrets) };
        const { pk, sk, version } = item;
        const subject = subjectOf(id);
        await store.transact(
          [
            { op: 'update', pk, sk, value, ifVersion: version },
            auditOp(deps, caller, { action: 'webhook.rotate', subject, after: { oldSecretExpiresAt: until } }),
          ],
          [eventOf(deps, tenant, 'webhook.secret-rotated', subject, { oldSecretExpiresAt: until })],
          signal,
        );
        return { webhook: await view(tenant, { ...item, value, version: version + 1 }, signal), secret };
      }, signal);
    },
  };
}
