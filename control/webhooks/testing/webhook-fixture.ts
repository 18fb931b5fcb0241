/** A broker with a bus and a receiver of webhooks that says what it is told to say: what tests of webhooks play with. */
import { createHmac } from 'node:crypto';
import { ManualClock } from '#shared/ports/clock.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { createLocalBus, type LocalBus } from '../../adapters/local-bus/local-bus.ts';
import { createMemoryStore } from '../../adapters/memory/memory-store.ts';
import { createSealedBox } from '../../adapters/sealed-box/sealed-box.ts';
import type { TargetMessage } from '../../ports/event-target-sender.ts';
import type { Store } from '../../ports/store.ts';
import type { SendOutcome, WebhookPost } from '../../ports/webhook-sender.ts';
import { adminOf, type BrokerClusters, createBrokerClusters } from '../../testing/broker-clusters.ts';

interface Received extends WebhookPost {
  readonly at: number;
}

export interface WebhookFixture {
  readonly world: BrokerClusters;
  readonly clock: ManualClock;
  readonly store: Store;
  readonly bus: LocalBus;
  readonly received: Received[];
  /** What event targets got. */
  readonly put: TargetMessage[];
  /** What event targets answer from now on. */
  answerPut(make: (message: TargetMessage) => SendOutcome): void;
  /** What the receiver answers from now on. */
  answer(make: (post: WebhookPost) => SendOutcome | Promise<SendOutcome>): void;
  /** Delivers until nothing is due. */
  settle(): Promise<void>;
  /** Lets time pass in steps, delivering at each. */
  pass(ms: number, stepMs?: number): Promise<void>;
  /** Something happens to the tenant; the id of the event. */
  happen(tenant?: string): Promise<string>;
}

export interface WebhookFixtureOptions {
  readonly wrap?: (store: Store) => Store;
  readonly log?: Log;
  /** To go on with after a crash. */
  readonly from?: WebhookFixture;
}

export const ok: SendOutcome = { status: 200, text: '' };
export const queueTarget = {
  arn: 'arn:aws:sqs:eu-central-1:123456789012:events',
  roleArn: 'arn:aws:iam::123456789012:role/isthmus-events-ops',
};
export const hook = 'https://hook.example/path?token=abc';
const boxKey = new Uint8Array(32).fill(7);

export async function createWebhookFixture({
  wrap = (s) => s,
  log = silentLog,
  from,
}: WebhookFixtureOptions = {}): Promise<WebhookFixture> {
  const clock = from?.clock ?? new ManualClock();
  const store = wrap(from?.store ?? createMemoryStore({ clock }));
  const bus = createLocalBus({ store, clock, log });
  const received: Received[] = from?.received ?? [];
  const put: TargetMessage[] = from?.put ?? [];
  let answerPut: (message: TargetMessage) => SendOutcome = () => ({ status: 200, text: 'receipt' });
  let answer: (post: WebhookPost) => SendOutcome | Promise<SendOutcome> = () => ok;
  const clusters = createBrokerClusters({
    clock,
    deps: {
      store,
      bus,
      log,
      secretBox: createSealedBox(boxKey),
      webhookSender: {
        refusal: (url) => (url.startsWith('https://') ? undefined : 'accepted is https only'),
        async post(post) {
          received.push({ ...post, at: clock.now() });
          return answer(post);
        },
      },
      eventTargetSender: {
        principal: 'arn:aws:iam::210987654321:root',
        async send(message) {
          put.push(message);
          return answerPut(message);
        },
      },
    },
  });
  const never = new AbortController().signal;
  const deliverer = clusters.control.webhooks.deliverer;
  if (!from) await clusters.control.tenants.bootstrap('default', { from: 'test', requestId: 'rq' });

  async function settle(): Promise<void> {
    while (await bus.deliverDue(never));
    await deliverer?.sweep(never);
  }
  let made = from ? 1_000 : 0;
  return {
    world: clusters,
    clock,
    store,
    bus,
    received,
    put,
    answerPut: (make) => {
      answerPut = make;
    },
    settle,
    answer: (make) => {
      answer = make;
    },
    async pass(ms, stepMs = 60_000) {
      const end = clock.now() + ms;
      while (clock.now() < end) {
        clock.advance(Math.min(stepMs, end - clock.now()));
        await settle();
      }
    },
    async happen(tenant = 'default') {
      made += 1;
      await clusters.control.clusters.createJoinToken(adminOf(tenant), `c${made}`);
      const page = await clusters.control.events.list(adminOf(tenant), { limit: 200, subject: `cluster/c${made}` });
      return page.items.at(-1)?.id ?? '';
    },
  };
}

/** As a receiver would: whether one of the signatures is of this secret. */
export function verifies(secret: string, { headers, body }: Pick<WebhookPost, 'headers' | 'body'>): boolean {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const text = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const expected = `v1,${createHmac('sha256', key).update(text).digest('base64')}`;
  return (headers['webhook-signature'] ?? '').split(' ').includes(expected);
}
