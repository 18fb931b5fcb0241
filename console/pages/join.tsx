/** Joining a cluster: the lines to paste, and a look at the agent's arrival. */
import { useState } from 'preact/hooks';
import { api, brokerFacts, holder } from '../data/api.ts';
import { clusters, now } from '../data/live.ts';
import { hrefOf } from '../data/route.ts';
import { Command, Failure, Section } from '../parts/bits.tsx';
import { Elapsed, Form } from '../parts/form.tsx';
import { can } from '../parts/load.ts';

const patienceMs = 15 * 60_000;

export function JoinPage() {
  const [awaited, setAwaited] = useState<{ readonly name: string; readonly since: number }>();
  if (!can('clusters:join')) return <Failure message="Joining a cluster needs a key with the role operator." />;
  return (
    <>
      <h1>Join a cluster</h1>
      <Section title="Its name">
        <Form
          fields={[
            {
              name: 'name',
              label: 'Name of the cluster',
              required: true,
              placeholder: 'rome',
              hint: 'Its peers know it by this name. Lower-case letters, digits and -, at most 63.',
            },
          ]}
          submit="Show the lines"
          lacks={({ name = '' }) => (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name) ? undefined : 'a name')}
          onSubmit={async ({ name = '' }) => setAwaited({ name, since: Date.now() })}
        />
      </Section>
      {awaited && <Lines key={awaited.name} name={awaited.name} />}
      {awaited && <Arrival key={awaited.since} {...awaited} />}
    </>
  );
}

function Lines({ name }: { name: string }) {
  const [key, setKey] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const broker = brokerFacts.value;
  const make = async (): Promise<void> => {
    try {
      const { secret } = await api.createKey({
        body: { name: `joins ${name}`, role: 'operator', expiresInSeconds: 86_400 },
      });
      setKey(secret);
      setFailure(undefined);
    } catch (error) {
      setFailure((error as Error).message);
    }
  };
  const hash = broker?.caHash ? ` --ca-hash ${broker.caHash}` : '';
  return (
    <Section title="Lines to paste">
      <p>On a machine that has the kubeconfig of the cluster and the command `isthmus`. Once on that machine:</p>
      <Command line={`isthmus login ${broker?.url ?? location.origin}${hash} --key ${key ?? 'KEY'}`} />
      {key === undefined && can('keys:write') && (
        <p>
          <button type="button" onClick={() => void make()}>
            Make a key for it
          </button>{' '}
          <span class="quiet">of the role operator, for a day, shown this once</span>
        </p>
      )}
      {key === undefined && !can('keys:write') && (
        <p class="quiet">
          KEY is the API key of {holder.value?.kind === 'member' ? holder.value.tenant : 'the tenant'}.
        </p>
      )}
      <Failure message={failure} />
      <p>Then, for this cluster:</p>
      <Command line={`isthmus join ${name} --kubeconfig ${name}.kubeconfig`} />
    </Section>
  );
}

function Arrival({ name, since }: { name: string; since: number }) {
  const [before] = useState(clusters.value.get(name)?.lastSeenAt);
  const cluster = clusters.value.get(name);
  const arrived = cluster?.state === 'joined' && cluster.online && cluster.lastSeenAt !== before;
  return (
    <Section title="Arrival">
      {arrived ? (
        <p role="status">
          <strong>{name} has arrived</strong>: Kubernetes {cluster.kubernetesVersion}, agent {cluster.agentVersion},{' '}
          {cluster.nodes} nodes. <a href={hrefOf('cluster', name)}>Look at it</a> or{' '}
          <a href={hrefOf('peer')}>peer it</a>.
        </p>
      ) : now.value - since > patienceMs ? (
        <Failure
          message={`${name} has not arrived within 15 minutes. The command says what it waits for; on a node, look at the pods of the namespace liqo.`}
        />
      ) : (
        <Elapsed since={since} words={`Waiting for the agent of ${name}, at most 15 minutes`} />
      )}
    </Section>
  );
}
