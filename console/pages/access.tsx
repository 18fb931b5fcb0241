/** What logs in to the tenant: API keys, members, identity providers. */
import type { Member } from '#shared/api-client/broker-api.ts';
import { all, api, isStale } from '../data/api.ts';
import { save } from '../model/edit.ts';
import type { Role } from '../model/rights.ts';
import { ConfirmButton, FormButton } from '../parts/actions.tsx';
import { Command, Empty, State, Time } from '../parts/bits.tsx';
import type { Field } from '../parts/form.tsx';
import { actionsColumn, List, OwnList, timeColumn } from '../parts/list.tsx';
import { can, useLoad } from '../parts/load.ts';
import type { ShownColumn } from '../parts/table.tsx';
import { Issuers } from './issuers.tsx';
import { wordsIn } from './terms-fields.ts';

type ApiKey = Awaited<ReturnType<typeof api.listKeys>>['items'][number];
type Scopes = Parameters<typeof api.createKey>[0]['body']['scopes'];

const roleField: Field = {
  name: 'role',
  label: 'Role',
  kind: 'select',
  options: [
    ['viewer', 'viewer: reads'],
    ['operator', 'operator: joins and peers'],
    ['admin', 'admin: everything'],
  ],
};
const roleOf = (text: string | undefined): Role => (text === 'admin' || text === 'operator' ? text : 'viewer');

export const AccessPage = () => (
  <>
    <h1>Access</h1>
    {can('keys:read') && <Keys />}
    <Members />
    {can('issuers:read') && <Issuers />}
  </>
);

const stateOf = ({ revokedAt, expiresAt }: ApiKey): string =>
  revokedAt !== undefined
    ? 'revoked'
    : expiresAt !== undefined && Date.parse(expiresAt) < Date.now()
      ? 'expired'
      : 'valid';

const shownOnce = (secret: string) => (
  <>
    <p>The key, shown this once. Nothing of it is stored that would give it back.</p>
    <Command line={secret} />
  </>
);

function Keys() {
  const { data, failure, reload } = useLoad(() => all((query) => api.listKeys({ query })), [], 'api-key');
  const columns: readonly ShownColumn<ApiKey>[] = [
    { key: 'name', title: 'Name', value: ({ name }) => name },
    { key: 'prefix', title: 'Begins with', value: ({ prefix }) => prefix, cell: ({ prefix }) => <code>{prefix}</code> },
    { key: 'role', title: 'Role', value: ({ role }) => role },
    { key: 'scopes', title: 'Scopes', value: ({ scopes }) => scopes?.join(', ') ?? 'all of the role' },
    {
      key: 'state',
      title: 'State',
      value: stateOf,
      cell: (key) => <State tone={stateOf(key) === 'valid' ? 'good' : 'off'}>{stateOf(key)}</State>,
    },
    {
      key: 'used',
      title: 'Last used',
      value: ({ lastUsedAt = '' }) => lastUsedAt,
      cell: ({ lastUsedAt }) => <Time at={lastUsedAt} />,
    },
    {
      key: 'ends',
      title: 'Ends',
      value: ({ expiresAt = '' }) => expiresAt,
      cell: ({ expiresAt }) => <Time at={expiresAt} />,
    },
    actionsColumn(
      (key) =>
        can('keys:write') &&
        stateOf(key) === 'valid' && (
          <div class="actions">
            <FormButton
              label="Rotate"
              title={`Replace ${key.name}`}
              submit="Rotate"
              fields={[
                {
                  name: 'hours',
                  label: 'Hours that the old one keeps working',
                  kind: 'number',
                  value: '0',
                  required: true,
                },
              ]}
              onSubmit={async ({ hours }) => {
                const overlapSeconds = Math.round(Number(hours) * 3_600);
                const { secret } = await api.rotateKey({ path: { key: key.id }, body: { overlapSeconds } });
                await reload();
                return shownOnce(secret);
              }}
            />
            <ConfirmButton
              label="Revoke"
              title="Revoke a key"
              name={key.name}
              onConfirm={async () => {
                await api.revokeKey({ path: { key: key.id } });
                await reload();
              }}
            >
              <p>Whatever uses it is refused at once; sessions of this page that began with it end.</p>
            </ConfirmButton>
          </div>
        ),
    ),
  ];
  return (
    <List
      title="API keys"
      actions={
        can('keys:write') && (
          <FormButton
            label="Make a key"
            submit="Make the key"
            fields={[
              { name: 'name', label: 'Name', required: true, hint: 'Of the person or program that gets it.' },
              roleField,
              {
                name: 'scopes',
                label: 'Scopes',
                placeholder: 'clusters:read, peerings:read',
                hint: 'Empty: everything that the role allows.',
              },
              { name: 'days', label: 'Days until it ends', kind: 'number', hint: 'Empty: it does not end by itself.' },
            ]}
            onSubmit={async ({ name = '', role, scopes, days }) => {
              const { secret } = await api.createKey({
                body: {
                  name,
                  role: roleOf(role),
                  // A word that is no scope the broker refuses, naming those that are.
                  scopes: wordsIn(scopes) as Scopes,
                  ...(days ? { expiresInSeconds: Math.round(Number(days) * 86_400) } : {}),
                },
              });
              await reload();
              return shownOnce(secret);
            }}
          />
        )
      }
      data={data}
      failure={failure}
      columns={columns}
      rowKey={({ id }) => id}
      empty={<Empty title="No key." />}
    />
  );
}

function Members() {
  const { data, failure, reload } = useLoad(() => all((query) => api.listMembers({ query })), [], 'member');
  const nameOf = ({ name, email, subject, id }: Member): string => name ?? email ?? subject ?? id;
  const columns: readonly ShownColumn<Member>[] = [
    { key: 'name', title: 'Name', value: nameOf },
    { key: 'who', title: 'Known by', value: ({ email, issuer, subject }) => email ?? `${subject} of ${issuer}` },
    { key: 'role', title: 'Role', value: ({ role }) => role },
    timeColumn('since', 'Since', ({ createdAt }) => createdAt),
    actionsColumn(
      (member) =>
        can('members:write') && (
          <div class="actions">
            <FormButton
              label="Change"
              title={`Change ${nameOf(member)}`}
              submit="Save"
              fields={[
                { name: 'name', label: 'Name', value: member.name ?? '' },
                { ...roleField, value: member.role },
              ]}
              onSubmit={async ({ name, role }) => {
                const path = { member: member.id };
                const body = { role: roleOf(role), ...(name ? { name } : {}) };
                await save({
                  from: member,
                  what: 'the member',
                  fields: (of) => [of.role, of.name],
                  wanted: [body.role, body.name ?? member.name],
                  read: () => api.getMember({ path }),
                  write: (ifVersion) => api.changeMember({ path, body }, { ifVersion }),
                  isStale,
                });
                await reload();
                return null;
              }}
            />
            <ConfirmButton
              label="Remove"
              title="Remove a member"
              name={nameOf(member)}
              onConfirm={async () => {
                await api.removeMember({ path: { member: member.id } });
                await reload();
              }}
            />
          </div>
        ),
    ),
  ];
  return (
    <OwnList
      title="Members"
      permission="members:write"
      make={
        <FormButton
          label="Add a member"
          submit="Add"
          intro={<p>By a verified email, or by the subject that an identity provider gives.</p>}
          fields={[
            { name: 'email', label: 'Email' },
            { name: 'issuer', label: 'Issuer', placeholder: 'https://id.example.com' },
            { name: 'subject', label: 'Subject' },
            { name: 'name', label: 'Name' },
            roleField,
          ]}
          onSubmit={async ({ email, issuer, subject, name, role }) => {
            await api.addMember({
              body: {
                role: roleOf(role),
                ...(email ? { email } : {}),
                ...(issuer ? { issuer } : {}),
                ...(subject ? { subject } : {}),
                ...(name ? { name } : {}),
              },
            });
            await reload();
            return null;
          }}
        />
      }
      data={data}
      failure={failure}
      columns={columns}
      empty={
        <Empty title="No member yet.">
          <p>Members log in by an identity provider that the tenant has registered.</p>
          <Command line="isthmus member add --email anna@example.com --role operator" />
        </Empty>
      }
    />
  );
}
