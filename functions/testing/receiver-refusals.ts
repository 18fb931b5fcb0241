/** Refusals of the operations on receivers of events: webhooks, and targets at AWS. */
import { expect } from 'vitest';
import { type ApiAnswer, createApiFixture } from './api-fixture.ts';
import { type Cases, made, times } from './refusal-case.ts';
import type { RefusingBroker } from './refusing-broker.ts';

const webhook = { url: 'https://hooks.example.com/in' };
const target = {
  arn: 'arn:aws:sqs:eu-central-1:123456789012:events',
  roleArn: 'arn:aws:iam::123456789012:role/isthmus-events-in',
};

async function disabled(b: RefusingBroker, collection: string, body: object): Promise<string> {
  const id = await made(b.post('acme', `/v1/${collection}`, body));
  expect((await b.patch('acme', `/v1/${collection}/${id}`, { enabled: false })).status).toBe(200);
  return id;
}
/** A delivery of a test event, at a receiver that was switched off since. */
async function deliveryOfDisabled(b: RefusingBroker, collection: string, body: object): Promise<ApiAnswer> {
  const id = await made(b.post('acme', `/v1/${collection}`, body));
  const { body: delivery } = await b.post('acme', `/v1/${collection}/${id}/test`);
  await b.patch('acme', `/v1/${collection}/${id}`, { enabled: false });
  return b.post('acme', `/v1/${collection}/${id}/deliveries/${delivery.id}/replay`);
}
/** Asks a broker on the same data that has lost the key for the secrets of webhooks. */
async function withoutKey(b: RefusingBroker, method: string, below: string, body: object): Promise<ApiAnswer> {
  const id = await made(b.post('acme', '/v1/webhooks', webhook));
  const next = await createApiFixture({ clock: b.fixture.clock, store: b.fixture.store, without: 'webhooks' });
  return next.call({ method, path: `/v1/webhooks/${id}${below}`, key: b.keys.acme, body });
}

export const receiverRefusals: Cases = {
  createWebhook: {
    url_refused: (b) => b.post('acme', '/v1/webhooks', { url: 'https://127.0.0.1/in' }),
    event_type_unknown: (b) => b.post('acme', '/v1/webhooks', { ...webhook, types: ['weather.changed'] }),
    webhooks_unavailable: { without: 'webhooks', meet: (b) => b.post('acme', '/v1/webhooks', webhook) },
    limit_reached: async (b) => {
      await times(20, () => b.post('acme', '/v1/webhooks', webhook));
      return b.post('acme', '/v1/webhooks', webhook);
    },
  },
  changeWebhook: {
    url_refused: async (b) =>
      b.patch('acme', `/v1/webhooks/${await made(b.post('acme', '/v1/webhooks', webhook))}`, {
        url: 'https://127.0.0.1/in',
      }),
    event_type_unknown: async (b) =>
      b.patch('acme', `/v1/webhooks/${await made(b.post('acme', '/v1/webhooks', webhook))}`, {
        types: ['weather.changed'],
      }),
    webhooks_unavailable: (b) => withoutKey(b, 'PATCH', '', { url: 'https://other.example.com/' }),
  },
  rotateWebhook: { webhooks_unavailable: (b) => withoutKey(b, 'POST', '/rotate', {}) },
  replayWebhook: {
    cursor_unknown: async (b) =>
      b.post('acme', `/v1/webhooks/${await made(b.post('acme', '/v1/webhooks', webhook))}/replay`, {
        cursor: 'bm9uZQ',
      }),
    webhook_disabled: async (b) => b.post('acme', `/v1/webhooks/${await disabled(b, 'webhooks', webhook)}/replay`, {}),
  },
  replayDelivery: { webhook_disabled: (b) => deliveryOfDisabled(b, 'webhooks', webhook) },
  createEventTarget: {
    event_type_unknown: (b) => b.post('acme', '/v1/event-targets', { ...target, types: ['weather.changed'] }),
    event_targets_unavailable: {
      without: 'event-targets',
      meet: (b) => b.post('acme', '/v1/event-targets', target),
    },
    limit_reached: async (b) => {
      await times(20, () => b.post('acme', '/v1/event-targets', target));
      return b.post('acme', '/v1/event-targets', target);
    },
  },
  changeEventTarget: {
    event_type_unknown: async (b) =>
      b.patch('acme', `/v1/event-targets/${await made(b.post('acme', '/v1/event-targets', target))}`, {
        types: ['weather.changed'],
      }),
  },
  replayEventTarget: {
    cursor_unknown: async (b) =>
      b.post('acme', `/v1/event-targets/${await made(b.post('acme', '/v1/event-targets', target))}/replay`, {
        cursor: 'bm9uZQ',
      }),
    event_target_disabled: async (b) =>
      b.post('acme', `/v1/event-targets/${await disabled(b, 'event-targets', target)}/replay`, {}),
  },
  replayTargetDelivery: { event_target_disabled: (b) => deliveryOfDisabled(b, 'event-targets', target) },
};
