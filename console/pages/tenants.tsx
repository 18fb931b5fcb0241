/** For the operator of the broker: its tenants. Nothing inside one is shown. */
import type { Tenant } from '#shared/api-client/broker-api.ts';
import { all, api } from '../data/api.ts';
import { ActButton, ConfirmButton, FormButton } from '../parts/actions.tsx';
import { Command, Empty, State } from '../parts/bits.tsx';
import { actionsColumn, List, timeColumn } from '../parts/list.tsx';
import { useLoad } from '../parts/load.ts';
import type { ShownColumn } from '../parts/table.tsx';

const tones = { active: 'good', suspended: 'warn', deleting: 'bad' } as const;

export function TenantsPage() {
  const { data, failure, reload } = useLoad(() => all((query) => api.listTenants({ query })));
  const change = (name: string, body: { state: 'active' | 'suspended'; reason?: string }) => async () => {
    await api.changeTenant({ path: { tenant: name }, body });
    await reload();
    return null;
  };
  const columns: readonly ShownColumn<Tenant>[] = [
    { key: 'name', title: 'Name', value: ({ name }) => name },
    { key: 'display', title: 'Display name', value: ({ displayName }) => displayName },
    {
      key: 'state',
      title: 'State',
      value: ({ state }) => state,
      cell: ({ state, suspendedReason }) => (
        <>
          <State tone={tones[state]}>{state}</State> {suspendedReason}
        </>
      ),
    },
    { key: 'clusters', title: 'Clusters, at most', value: ({ limits }) => limits.clusters },
    { key: 'peerings', title: 'Peerings, at most', value: ({ limits }) => limits.peerings },
    timeColumn('since', 'Since', ({ createdAt }) => createdAt),
    actionsColumn(({ name, state }) =>
      state === 'active' ? (
        <ConfirmButton
          label="Suspend"
          title="Suspend a tenant"
          name={name}
          onConfirm={change(name, { state: 'suspended', reason: 'suspended by the operator of the broker' })}
        >
          <p>Every request of it is refused; running peerings go on.</p>
        </ConfirmButton>
      ) : (
        state === 'suspended' && <ActButton label="Resume" about={name} onAct={change(name, { state: 'active' })} />
      ),
    ),
  ];
  const create = (
    <FormButton
      label="Make a tenant"
      submit="Make the tenant"
      fields={[
        { name: 'name', label: 'Name', required: true, hint: 'Given once: it is part of every key of the tenant.' },
        { name: 'displayName', label: 'Display name' },
      ]}
      onSubmit={async ({ name = '', displayName }) => {
        const { firstKey } = await api.createTenant({ body: { name, ...(displayName ? { displayName } : {}) } });
        await reload();
        return (
          <>
            <p>Its first admin key, shown this once, for its owner:</p>
            <Command line={firstKey.secret} />
          </>
        );
      }}
    />
  );
  return (
    <>
      <h1>Tenants</h1>
      <List
        title="Tenants of this broker"
        actions={create}
        name="Tenants"
        data={data}
        failure={failure}
        columns={columns}
        rowKey={({ name }) => name}
        empty={<Empty title="No tenant." />}
      />
    </>
  );
}
