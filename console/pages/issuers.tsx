/** Identity providers of the tenant, whose tokens log in. */
import type { Issuer } from '#shared/api-client/broker-api.ts';
import { all, api } from '../data/api.ts';
import type { Role } from '../model/rights.ts';
import { labelsIn, labelTexts } from '../model/text.ts';
import { ConfirmButton, FormButton } from '../parts/actions.tsx';
import { Empty } from '../parts/bits.tsx';
import { actionsColumn, OwnList, timeColumn } from '../parts/list.tsx';
import { can, useLoad } from '../parts/load.ts';
import type { ShownColumn } from '../parts/table.tsx';

export function Issuers() {
  const { data, failure, reload } = useLoad(() => all((query) => api.listIssuers({ query })), [], 'issuer');
  const columns: readonly ShownColumn<Issuer>[] = [
    { key: 'url', title: 'Issuer', value: ({ url }) => url },
    { key: 'audience', title: 'Audience', value: ({ audience }) => audience },
    {
      key: 'roles',
      title: 'Roles by claim',
      value: ({ claims, roles }) => `${claims.role ?? ''} ${labelTexts(roles).join(', ')}`,
    },
    timeColumn('since', 'Since', ({ createdAt }) => createdAt),
    actionsColumn(
      ({ id, url }) =>
        can('issuers:write') && (
          <ConfirmButton
            label="Remove"
            title="Remove an identity provider"
            name={url}
            onConfirm={async () => {
              await api.removeIssuer({ path: { issuer: id } });
              await reload();
            }}
          >
            <p>Its tokens are refused at once; sessions of this page that began with one end.</p>
          </ConfirmButton>
        ),
    ),
  ];
  return (
    <OwnList
      title="Identity providers"
      permission="issuers:write"
      make={<Register reload={reload} />}
      data={data}
      failure={failure}
      columns={columns}
      empty={
        <Empty title="No identity provider: only keys log in.">
          <p>
            Make a public client there (no secret, authorization code with PKCE) with the redirect URI {location.origin}
            /, register it here, and add its accounts as members.
          </p>
        </Empty>
      }
    />
  );
}

const Register = ({ reload }: { reload: () => Promise<void> }) => (
  <FormButton
    label="Register a provider"
    submit="Register"
    fields={[
      { name: 'url', label: 'URL of the issuer', required: true, placeholder: 'https://id.example.com' },
      { name: 'audience', label: 'Audience', required: true, hint: 'For logins of this page: the client ID.' },
      { name: 'claim', label: 'Claim that has the role', hint: 'Empty: only members are let in.' },
      { name: 'roles', label: 'Words in it and their roles', placeholder: 'ops=operator, everyone=viewer' },
    ]}
    onSubmit={async ({ url = '', audience = '', claim, roles }) => {
      await api.registerIssuer({
        body: {
          url: url.trim(),
          audience: audience.trim(),
          ...(claim ? { claims: { role: claim.trim() } } : {}),
          // A word that is no role the broker refuses, naming those that are.
          ...(roles ? { roles: labelsIn(roles) as Record<string, Role> } : {}),
        },
      });
      await reload();
      return null;
    }}
  />
);
