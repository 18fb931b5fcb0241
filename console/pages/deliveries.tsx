/** Webhooks and event targets of the tenant, as a list. */
import type { EventTarget, Webhook } from '#shared/api-client/broker-api.ts';
import { all, api } from '../data/api.ts';
import { hrefOf } from '../data/route.ts';
import { FormButton } from '../parts/actions.tsx';
import { Command, Empty, State, Time } from '../parts/bits.tsx';
import { OwnList } from '../parts/list.tsx';
import { useLoad } from '../parts/load.ts';
import type { ShownColumn } from '../parts/table.tsx';
import { wordsIn } from './terms-fields.ts';

type Receiver = Pick<Webhook, 'id' | 'types' | 'state' | 'description' | 'failingSince' | 'disabledReason'>;

export const receiverState = ({ state, failingSince, disabledReason }: Receiver) =>
  state === 'disabled' ? (
    <>
      <State tone="off">disabled</State> {disabledReason}
    </>
  ) : failingSince !== undefined ? (
    <>
      <State tone="bad">failing</State> since <Time at={failingSince} />
    </>
  ) : (
    <State tone="good">enabled</State>
  );

const common: readonly ShownColumn<Receiver>[] = [
  {
    key: 'state',
    title: 'State',
    value: ({ state, failingSince = '' }) => `${state} ${failingSince}`,
    cell: receiverState,
  },
  { key: 'types', title: 'Types', value: ({ types }) => types.join(', ') },
  { key: 'description', title: 'Description', value: ({ description }) => description },
];
const typesField = {
  name: 'types',
  label: 'Types of events',
  value: '*',
  hint: '*, types of the catalogue, or groups such as peering.*; separated by commas.',
};
const descriptionField = { name: 'description', label: 'What it is for' };

export const DeliveriesPage = () => (
  <>
    <h1>Webhooks and event targets</h1>
    <Webhooks />
    <EventTargets />
  </>
);

function Webhooks() {
  const { data, failure, reload } = useLoad(() => all((query) => api.listWebhooks({ query })), [], 'webhook');
  const columns: readonly ShownColumn<Webhook>[] = [
    {
      key: 'url',
      title: 'URL',
      value: ({ url }) => url,
      cell: ({ id, url }) => <a href={hrefOf('webhook', id)}>{url}</a>,
    },
    ...common,
  ];
  const create = (
    <FormButton
      label="Make a webhook"
      submit="Make the webhook"
      fields={[
        {
          name: 'url',
          label: 'URL',
          required: true,
          placeholder: 'https://hooks.example.com/isthmus',
          hint: 'https, at a public address.',
        },
        typesField,
        descriptionField,
      ]}
      onSubmit={async ({ url = '', types, description = '' }) => {
        const { secret } = await api.createWebhook({ body: { url: url.trim(), types: wordsIn(types), description } });
        await reload();
        return (
          <>
            <p>Its secret, shown this once: the receiver checks signatures with it.</p>
            <Command line={secret} />
          </>
        );
      }}
    />
  );
  return (
    <OwnList
      title="Webhooks"
      permission="webhooks:write"
      make={create}
      data={data}
      failure={failure}
      columns={columns}
      empty={
        <Empty title="No webhook yet.">
          <p>A webhook gets a signed POST for each event of the types that it asks for.</p>
          <Command line="isthmus webhook create https://hooks.example.com/isthmus --type 'peering.*'" />
        </Empty>
      }
    />
  );
}

function EventTargets() {
  const { data, failure, reload } = useLoad(() => all((query) => api.listEventTargets({ query })), [], 'event-target');
  const columns: readonly ShownColumn<EventTarget>[] = [
    {
      key: 'arn',
      title: 'Bus or queue',
      value: ({ arn }) => arn,
      cell: ({ id, arn }) => <a href={hrefOf('event-target', id)}>{arn}</a>,
    },
    ...common,
  ];
  const create = (
    <FormButton
      label="Make an event target"
      submit="Make the event target"
      fields={[
        {
          name: 'arn',
          label: 'ARN of the bus or queue',
          required: true,
          placeholder: 'arn:aws:sqs:eu-south-1:111122223333:isthmus',
        },
        {
          name: 'roleArn',
          label: 'ARN of the role',
          required: true,
          placeholder: 'arn:aws:iam::111122223333:role/isthmus-events-queue',
        },
        typesField,
        descriptionField,
      ]}
      onSubmit={async ({ arn = '', roleArn = '', types, description = '' }) => {
        const { id } = await api.createEventTarget({
          body: { arn: arn.trim(), roleArn: roleArn.trim(), types: wordsIn(types), description },
        });
        await reload();
        return (
          <>
            <p>Its role needs two policies, which this prints:</p>
            <Command line={`isthmus event-target policies ${id}`} />
          </>
        );
      }}
    />
  );
  return (
    <OwnList
      title="Event targets"
      permission="webhooks:write"
      make={create}
      data={data}
      failure={failure}
      columns={columns}
      empty={
        <Empty title="No event target yet.">
          <p>An event target is an EventBridge bus or an SQS queue of your own.</p>
          <Command line="isthmus event-target create ARN --role arn:aws:iam::ACCOUNT:role/isthmus-events-NAME" />
        </Empty>
      }
    />
  );
}
