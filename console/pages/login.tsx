/** Logging in: the key once, then a session. */
import { logIn } from '../data/api.ts';
import { Command, Section } from '../parts/bits.tsx';
import { Form } from '../parts/form.tsx';

export const LoginPage = () => (
  <main class="login">
    <h1>Isthmus</h1>
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
    <Section title="Where is the key?">
      <p>The broker prints an admin key at its first start. With an admin key, make one for each person:</p>
      <Command line="isthmus key create NAME --role viewer" />
      <p>When the only admin key is lost, start the broker once with another flag:</p>
      <Command line="isthmus broker serve --data DIR --new-admin-key" />
    </Section>
  </main>
);
