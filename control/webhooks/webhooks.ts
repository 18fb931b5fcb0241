/** Webhooks of a tenant: made, read, changed, rotated, deleted. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Page } from '../ports/store.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { untilWritten } from '../store/until-written.ts';
import { createReceiverRegistry } from './receiver-registry.ts';
import { subjectOf, webhookKind } from './receivers.ts';
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

interface NewWebhook {
  readonly url: string;
  /** `*`, types or groups of types. */
  readonly types: readonly string[];
  readonly description?: string;
}

interface WebhookChange extends Partial<NewWebhook> {
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

/** More would make the header long; further rotations drop the oldest secret. */
const maxSecrets = 3;

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

  const registry = createReceiverRegistry<WebhookRecord, WebhookView, WebhookChange>(deps, {
    kind: webhookKind,
    view: (_, item, failingSince) => webhookView(item, clock.now(), failingSince),
    own: (_, { url }) => (url === undefined ? {} : { url: checkUrl(url) }),
    plain: ({ url, types, description }) => [url, types, description],
    told: ({ url, types, description, disabled }) => ({
      host: hostOf(url),
      types,
      description,
      enabled: disabled === undefined,
    }),
  });

  return {
    async create(caller, input, signal) {
      mustHave(caller, 'webhooks:write');
      const before = earlier<IssuedWebhook>(caller);
      if (before) return before;
      const { tenant } = caller;
      const id = ids.next('wh');
      const url = checkUrl(input.url);
      const types = checkTypes(input.types);
      await registry.mustHaveRoom(tenant, signal);
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
      return registry.add(caller, webhook, (shown): IssuedWebhook => ({ webhook: shown, secret }), signal);
    },

    get: registry.get,
    list: registry.list,
    change: registry.change,

    async delete(caller, id, signal) {
      const { item } = await registry.delete(caller, id, signal);
      return webhookView(item, clock.now());
    },

    async rotate(caller, id, overlapSeconds, signal) {
      mustHave(caller, 'webhooks:write');
      const before = earlier<IssuedWebhook>(caller);
      if (before) return before;
      const { tenant } = caller;
      return untilWritten(async () => {
        const item = await registry.find(tenant, id, signal);
        const { secret, record } = await newSecret(tenant, id, signal);
        const now = clock.now();
        const until = now + overlapSeconds * 1_000;
        const old = liveSecrets(item.value, now)
          .map((one) => ({ ...one, expiresAt: Math.min(one.expiresAt ?? until, until) }))
          .filter(({ expiresAt }) => expiresAt > now);
        const value: WebhookRecord = { ...item.value, secrets: [record, ...old].slice(0, maxSecrets) };
        const { pk, sk, version } = item;
        const subject = subjectOf(id);
        const webhook = await registry.shown(tenant, { ...item, value, version: version + 1 }, signal);
        await store.transact(
          [
            { op: 'update', pk, sk, value, ifVersion: version },
            ...auditOps(deps, caller, { action: 'webhook.rotate', subject, after: { oldSecretExpiresAt: until } }),
            ...remembered(caller, { webhook, secret } satisfies IssuedWebhook),
          ],
          [eventOf(deps, tenant, 'webhook.secret-rotated', subject, { oldSecretExpiresAt: until })],
          signal,
        );
        return { webhook, secret };
      }, signal);
    },
  };
}
