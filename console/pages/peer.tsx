/** Asking for a peering, or for other terms of one that is there. */
import { api } from '../data/api.ts';
import { clusters, put } from '../data/live.ts';
import { goTo, route } from '../data/route.ts';
import { labelsIn, quantities } from '../model/text.ts';
import { Command, Empty, Failure, Section } from '../parts/bits.tsx';
import { Form, type Values } from '../parts/form.tsx';
import { can } from '../parts/load.ts';
import { NoClusters } from './clusters.tsx';
import { resourceFields, resourcesOf } from './terms-fields.ts';

export function PeerPage() {
  const joined = [...clusters.value.values()].filter(({ state }) => state === 'joined');
  if (!can('peerings:write')) return <Failure message="Peering needs a key with the role operator." />;
  if (joined.length < 2) {
    return (
      <>
        <h1>Peer two clusters</h1>
        <Section title="First">
          {joined.length === 0 ? (
            <NoClusters />
          ) : (
            <Empty title="One cluster has joined; a peering takes two.">
              <Command line="isthmus join milan --kubeconfig milan.kubeconfig" />
            </Empty>
          )}
        </Section>
      </>
    );
  }
  const names = joined.map(
    ({ name, allocatable }) => [name, `${name} (${quantities(allocatable, 'size unknown')})`] as const,
  );
  const { query } = route.value;
  const value = (name: string, otherwise?: string) => {
    const given = query.get(name) ?? otherwise;
    return given === undefined ? {} : { value: given };
  };
  return (
    <>
      <h1>Peer two clusters</h1>
      <Section title="Terms">
        <Form
          fields={[
            {
              name: 'consumer',
              label: 'Consumer, which borrows',
              kind: 'select',
              options: names,
              ...value('consumer'),
            },
            {
              name: 'provider',
              label: 'Provider, which appears in the consumer as one more node',
              kind: 'select',
              options: names,
              ...value('provider', names[1]?.[0]),
            },
            ...resourceFields.map((field) => ({ ...field, ...value(field.name) })),
            { name: 'class', label: 'Class', placeholder: 'default', ...value('class') },
            { name: 'labels', label: 'Labels', placeholder: 'env=test, team=blue' },
            {
              name: 'network',
              label: 'Link between their pods',
              kind: 'select',
              options: [
                ['', 'when both clusters can and allow it'],
                ['yes', 'required'],
                ['no', 'none'],
                ['inBand', "required, and the provider's API server is reached through it"],
              ],
            },
          ]}
          submit="Peer"
          lacks={({ consumer, provider }) => (consumer === provider ? 'two clusters' : undefined)}
          onSubmit={async (values) => {
            const peering = await api.createPeering({ body: bodyOf(values) });
            put(peering);
            goTo('peering', peering.id);
          }}
        />
      </Section>
    </>
  );
}

function bodyOf(values: Values) {
  const { consumer = '', provider = '', network, labels = '' } = values;
  return {
    consumer,
    provider,
    resources: resourcesOf(values),
    ...(values.class ? { class: values.class.trim() } : {}),
    ...(labels.trim() !== '' && { labels: labelsIn(labels) }),
    ...(network && {
      network: network === 'no' ? { enabled: false } : { enabled: true, inBand: network === 'inBand' },
    }),
  };
}
