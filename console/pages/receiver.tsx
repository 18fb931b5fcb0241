/** One webhook or event target: its deliveries, and sending again what failed. */
import type { EventTargetDelivery, WebhookDelivery } from '#shared/api-client/broker-api.ts';
import { all, api } from '../data/api.ts';
import { goTo, hrefOf } from '../data/route.ts';
import type { Tone } from '../model/peering.ts';
import { ActButton, ConfirmButton, FormButton } from '../parts/actions.tsx';
import { Command, Empty, Facts, Failure, Section, State, Time } from '../parts/bits.tsx';
import { actionsColumn, List, timeColumn } from '../parts/list.tsx';
import { can, useLoad } from '../parts/load.ts';
import type { ShownColumn } from '../parts/table.tsx';
import { receiverState } from './deliveries.tsx';

type Delivery = Pick<
  WebhookDelivery,
  'id' | 'type' | 'subject' | 'state' | 'attempts' | 'createdAt' | 'nextAttemptAt'
> & {
  readonly lastAttempt?: WebhookDelivery['lastAttempt'] | EventTargetDelivery['lastAttempt'];
};

const tones: Readonly<Record<Delivery['state'], Tone>> = { pending: 'busy', delivered: 'good', dead: 'bad' };
/** As long as a receiver has for its answer, and a little. */
const testWaitSeconds = 15;
const patience = { timeoutMs: 30_000 };

/** Of the newest ones. */
const mostShown = 1_000;

/** The last attempt in words. */
function outcomeOf({ lastAttempt }: Delivery): string {
  if (lastAttempt === undefined) return 'not tried yet';
  const { durationMs, error } = lastAttempt;
  const receipt = 'receipt' in lastAttempt ? lastAttempt.receipt : undefined;
  const status = 'status' in lastAttempt ? lastAttempt.status : undefined;
  const what = error ?? (status === undefined ? `taken as ${receipt ?? 'sent'}` : `status ${status}`);
  return `${what}, ${durationMs} ms`;
}

interface Operations {
  readonly kind: 'webhook' | 'event target';
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly list: () => Promise<readonly Delivery[]>;
  readonly test: () => Promise<Delivery>;
  readonly replay: (delivery: string) => Promise<unknown>;
  readonly replayDead: (cursor: string | undefined) => Promise<{ replayed: number; cursor?: string | undefined }>;
  readonly enable: (enabled: boolean) => Promise<unknown>;
  readonly remove: () => Promise<unknown>;
}

function Deliveries({ operations, onChange }: { operations: Operations; onChange: () => Promise<void> }) {
  const { kind, id, name, enabled } = operations;
  const { data, failure, reload } = useLoad(operations.list, [id]);
  const write = can('webhooks:write');
  const again = async (delivery: string) => {
    await operations.replay(delivery);
    await reload();
    return 'sent again';
  };
  const columns: readonly ShownColumn<Delivery>[] = [
    timeColumn('made', 'When', ({ createdAt }) => createdAt),
    { key: 'type', title: 'Event', value: ({ type }) => type.replace(/^dev\.isthmus\./, '') },
    { key: 'subject', title: 'About', value: ({ subject }) => subject },
    {
      key: 'state',
      title: 'State',
      value: ({ state }) => state,
      cell: ({ state }) => <State tone={tones[state]}>{state}</State>,
    },
    { key: 'attempts', title: 'Attempts', value: ({ attempts }) => attempts },
    { key: 'last', title: 'Last attempt', value: outcomeOf },
    {
      key: 'next',
      title: 'Next',
      value: ({ nextAttemptAt = '' }) => nextAttemptAt,
      cell: ({ nextAttemptAt }) => <Time at={nextAttemptAt} none="" />,
    },
    actionsColumn(
      (delivery) =>
        write &&
        delivery.state !== 'pending' && (
          <ActButton label="Send again" about={delivery.id} onAct={() => again(delivery.id)} />
        ),
    ),
  ];
  return (
    <List
      title="Deliveries"
      actions={
        <>
          <ActButton label="Look again" onAct={() => reload().then(() => null)} />
          {write && (
            <ActButton
              label="Send a test event"
              onAct={async () => {
                const delivery = await operations.test();
                await reload();
                return `${delivery.state}: ${outcomeOf(delivery)}`;
              }}
            />
          )}
          {write && (
            <ActButton
              label="Send all dead letters again"
              onAct={async () => {
                let sent = 0;
                let cursor: string | undefined;
                do {
                  const page = await operations.replayDead(cursor);
                  sent += page.replayed;
                  cursor = page.cursor;
                } while (cursor !== undefined);
                await reload();
                return `${sent} sent again`;
              }}
            />
          )}
          {write && (
            <ActButton
              label={enabled ? 'Disable' : 'Enable'}
              onAct={async () => {
                await operations.enable(!enabled);
                await onChange();
                return null;
              }}
            />
          )}
          {write && (
            <ConfirmButton
              label="Delete"
              title={`Delete the ${kind}`}
              name={name}
              onConfirm={async () => {
                await operations.remove();
                goTo('deliveries');
              }}
            >
              <p>What waits for it is dropped.</p>
            </ConfirmButton>
          )}
        </>
      }
      data={data}
      failure={failure}
      columns={columns}
      rowKey={(delivery) => delivery.id}
      order={{ key: 'made', down: true }}
      empty={<Empty title="Nothing has been sent to it yet. Send a test event to see whether it answers." />}
    />
  );
}

const Back = () => (
  <p>
    <a href={hrefOf('deliveries')}>All webhooks and event targets</a>
  </p>
);

export function WebhookPage({ id }: { id: string }) {
  const path = { webhook: id };
  const { data: webhook, failure, reload } = useLoad(() => api.getWebhook({ path }), [id], `webhook/${id}`);
  if (webhook === undefined) {
    return (
      <>
        <Failure message={failure} />
        <Back />
      </>
    );
  }
  const operations: Operations = {
    kind: 'webhook',
    id,
    name: webhook.url,
    enabled: webhook.state === 'enabled',
    list: () => all((query) => api.listDeliveries({ path, query }), mostShown),
    test: async () => {
      const { id: delivery } = await api.testWebhook({ path });
      return api.getDelivery({ path: { ...path, delivery }, query: { wait: testWaitSeconds } }, patience);
    },
    replay: (delivery) => api.replayDelivery({ path: { ...path, delivery } }),
    replayDead: (cursor) => api.replayWebhook({ path, body: cursor === undefined ? {} : { cursor } }),
    enable: (enabled) => api.changeWebhook({ path, body: { enabled } }),
    remove: () => api.deleteWebhook({ path }),
  };
  return (
    <>
      <h1>Webhook</h1>
      <Section
        title="Facts"
        actions={
          can('webhooks:write') && (
            <FormButton
              label="Rotate its secret"
              submit="Rotate"
              fields={[
                {
                  name: 'hours',
                  label: 'Hours that the old one signs as well',
                  kind: 'number',
                  value: '24',
                  required: true,
                },
              ]}
              onSubmit={async ({ hours }) => {
                const overlapSeconds = Math.round(Number(hours) * 3_600);
                const { secret } = await api.rotateWebhook({ path, body: { overlapSeconds } });
                await reload();
                return (
                  <>
                    <p>The new secret, shown this once:</p>
                    <Command line={secret} />
                  </>
                );
              }}
            />
          )
        }
      >
        <Facts
          rows={[
            ['URL', webhook.url],
            ['State', receiverState(webhook)],
            ['Types', webhook.types.join(', ')],
            ['Description', webhook.description],
            ['Made', <Time key="made" at={webhook.createdAt} />],
          ]}
        />
      </Section>
      <Deliveries operations={operations} onChange={reload} />
      <Back />
    </>
  );
}

export function EventTargetPage({ id }: { id: string }) {
  const path = { target: id };
  const { data: target, failure, reload } = useLoad(() => api.getEventTarget({ path }), [id], `event-target/${id}`);
  if (target === undefined) {
    return (
      <>
        <Failure message={failure} />
        <Back />
      </>
    );
  }
  const operations: Operations = {
    kind: 'event target',
    id,
    name: target.arn,
    enabled: target.state === 'enabled',
    list: () => all((query) => api.listTargetDeliveries({ path, query }), mostShown),
    test: async () => {
      const { id: delivery } = await api.testEventTarget({ path });
      return api.getTargetDelivery({ path: { ...path, delivery }, query: { wait: testWaitSeconds } }, patience);
    },
    replay: (delivery) => api.replayTargetDelivery({ path: { ...path, delivery } }),
    replayDead: (cursor) => api.replayEventTarget({ path, body: cursor === undefined ? {} : { cursor } }),
    enable: (enabled) => api.changeEventTarget({ path, body: { enabled } }),
    remove: () => api.deleteEventTarget({ path }),
  };
  return (
    <>
      <h1>Event target</h1>
      <Section title="Facts">
        <Facts
          rows={[
            ['Bus or queue', target.arn],
            ['Role', target.roleArn],
            ['State', receiverState(target)],
            ['Types', target.types.join(', ')],
            ['Description', target.description],
            ['Trusts', target.principal],
            ['External ID', target.externalId],
          ]}
        />
        <Command line={`isthmus event-target policies ${id}`} />
      </Section>
      <Deliveries operations={operations} onChange={reload} />
      <Back />
    </>
  );
}
