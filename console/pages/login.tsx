/** Logging in: by a key, once, or by an identity provider of the tenant; then a session. */
import { logIn } from '../data/api.ts';
import { beginLogin, remembered } from '../data/oidc.ts';
import { Command, Failure, Section } from '../parts/bits.tsx';
import { Form } from '../parts/form.tsx';

export const LoginPage = ({ failure }: { failure: string | undefined }) => (
  <main class="login">
    <h1>Isthmus</h1>
    <Failure message={failure} />
    <Section title="Log in">
      <Form
        fields={[
          {
            name: 'key',
            label: 'API key',
            kind: 'password',
            required: true,
            hint: 'Sent once: the broker answers with a session of 12 hours that no script can read. An operator key of the broker shows its tenants.',
          },
        ]}
        submit="Log in"
        onSubmit={({ key = '' }) => logIn(key.trim())}
      />
    </Section>
    <ProviderLogin />
    <Section title="Where is the key?">
      <p>The broker prints an admin key at its first start. With an admin key, make one for each person:</p>
      <Command line="isthmus key create NAME --role viewer" />
      <p>When the only admin key is lost, start the broker once with another flag:</p>
      <Command line="isthmus broker serve --data DIR --new-admin-key" />
    </Section>
  </main>
);

function ProviderLogin() {
  const { issuer = '', client = '', tenant = 'default' } = remembered();
  return (
    <Section title="Log in by an identity provider">
      <Form
        fields={[
          { name: 'tenant', label: 'Tenant', value: tenant, required: true },
          {
            name: 'issuer',
            label: 'Issuer',
            value: issuer,
            required: true,
            placeholder: 'https://id.example.com',
            hint: 'As the tenant has registered it.',
          },
          {
            name: 'client',
            label: 'Client ID',
            value: client,
            required: true,
            hint: `A public client of the provider with the redirect URI ${location.origin}/; the audience that the tenant has registered.`,
          },
        ]}
        submit="Go to the provider"
        onSubmit={async (values) =>
          beginLogin({
            tenant: (values.tenant ?? '').trim(),
            issuer: (values.issuer ?? '').trim(),
            client: (values.client ?? '').trim(),
          })
        }
      />
    </Section>
  );
}
