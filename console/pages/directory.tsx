/** Clusters that tenants publish: asked for by others, shown and hidden by their own. */
import type { DirectoryEntry } from '#shared/api-client/broker-api.ts';
import { all, api, holder } from '../data/api.ts';
import { goTo } from '../data/route.ts';
import { labelsIn, labelTexts, quantities } from '../model/text.ts';
import { ConfirmButton, FormButton } from '../parts/actions.tsx';
import { Command, Empty, Labels } from '../parts/bits.tsx';
import { actionsColumn, List, timeColumn } from '../parts/list.tsx';
import { can, useLoad } from '../parts/load.ts';
import type { ShownColumn } from '../parts/table.tsx';
import { clusterField, resourceFields, resourcesOf, wordsIn } from './terms-fields.ts';

export function DirectoryPage() {
  const { data, failure, reload } = useLoad(() => all((query) => api.listDirectory({ query })), [], 'directory');
  const own = holder.value?.kind === 'member' ? holder.value.tenant : '';
  const columns: readonly ShownColumn<DirectoryEntry>[] = [
    { key: 'cluster', title: 'Cluster', value: ({ tenant, cluster }) => `${tenant}/${cluster}` },
    { key: 'region', title: 'Region', value: ({ region }) => region },
    { key: 'capacity', title: 'Capacity', value: ({ capacity }) => quantities(capacity, 'not said') },
    { key: 'classes', title: 'Classes', value: ({ classes }) => classes.join(', ') },
    {
      key: 'labels',
      title: 'Labels',
      value: ({ labels }) => labelTexts(labels).join(' '),
      cell: ({ labels }) => <Labels of={labels} />,
    },
    { key: 'description', title: 'Description', value: ({ description }) => description },
    timeColumn('updated', 'Updated', ({ updatedAt }) => updatedAt),
    actionsColumn((entry) =>
      entry.tenant === own ? <Unpublish entry={entry} reload={reload} /> : <Ask entry={entry} />,
    ),
  ];
  return (
    <>
      <h1>Directory</h1>
      <List
        title="Published clusters"
        actions={can('directory:write') && <Publish reload={reload} />}
        data={data}
        failure={failure}
        columns={columns}
        rowKey={({ tenant, cluster }) => `${tenant}/${cluster}`}
        empty={
          <Empty title="No tenant publishes a cluster.">
            <p>A published cluster is seen by all tenants of the broker, with what is said here and nothing else.</p>
            <Command line="isthmus directory publish milan --region eu-1 --labels tier=gold" />
          </Empty>
        }
      />
    </>
  );
}

const Publish = ({ reload }: { reload: () => Promise<void> }) => (
  <FormButton
    label="Publish"
    title="Publish a cluster, or say something else of it"
    submit="Publish"
    fields={[
      clusterField('cluster', 'A cluster of yours'),
      { name: 'region', label: 'Region', placeholder: 'eu-1' },
      { name: 'labels', label: 'Labels', placeholder: 'tier=gold' },
      { name: 'classes', label: 'Classes', value: 'default' },
      ...resourceFields.map((field) => (field.hint ? { ...field, hint: 'A hint for readers, in your words.' } : field)),
      { name: 'description', label: 'Description', kind: 'long' as const },
    ]}
    onSubmit={async (values) => {
      await api.publishCluster({
        body: {
          cluster: values.cluster ?? '',
          region: values.region ?? '',
          labels: labelsIn(values.labels ?? ''),
          classes: wordsIn(values.classes),
          capacity: resourcesOf(values),
          description: values.description ?? '',
        },
      });
      await reload();
      return null;
    }}
  />
);

const Unpublish = ({ entry: { cluster }, reload }: { entry: DirectoryEntry; reload: () => Promise<void> }) =>
  can('directory:write') ? (
    <ConfirmButton
      label="Unpublish"
      title="Hide a cluster from other tenants"
      name={cluster}
      onConfirm={async () => {
        await api.unpublishCluster({ path: { cluster } });
        await reload();
      }}
    >
      <p>Peerings and requests that are there stay.</p>
    </ConfirmButton>
  ) : null;

const Ask = ({ entry: { tenant, cluster, classes } }: { entry: DirectoryEntry }) =>
  can('requests:write') ? (
    <FormButton
      label="Ask for it"
      title={`Ask ${tenant} for ${cluster}`}
      submit="Ask"
      fields={[
        clusterField('consumer', 'Consumer, a cluster of yours'),
        ...resourceFields,
        { name: 'class', label: 'Class', kind: 'select', options: classes.map((each) => [each, each] as const) },
        { name: 'reason', label: 'Why', kind: 'long' as const },
      ]}
      onSubmit={async (values) => {
        await api.createRequest({
          body: {
            consumer: values.consumer ?? '',
            providerTenant: tenant,
            provider: cluster,
            resources: resourcesOf(values),
            reason: values.reason ?? '',
            ...(values.class && values.class !== '*' ? { class: values.class } : {}),
          },
        });
        goTo('sharing');
        return null;
      }}
    />
  ) : null;
