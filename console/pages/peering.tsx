/** One peering: phase, capacity, conditions of both ends with what is waited for and what to do, its link, what happened. */

import { useState } from 'preact/hooks';
import type { Peering } from '#shared/api-client/broker-api.ts';
import { api, isStale } from '../data/api.ts';
import { connection, peerings, put } from '../data/live.ts';
import { hrefOf } from '../data/route.ts';
import { save } from '../model/edit.ts';
import { isSettled, linkText, pairOf, toneOf } from '../model/peering.ts';
import { quantities } from '../model/text.ts';
import { Bars, Command, Empty, Facts, Section, State, Time } from '../parts/bits.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Elapsed } from '../parts/form.tsx';
import { EditableLabels } from '../parts/labels.tsx';
import { can } from '../parts/load.ts';
import { Timeline } from '../parts/timeline.tsx';
import { Lately, LinkSection } from './peering-link.tsx';

type Condition = Peering['conditions'][number];

export function PeeringPage({ id }: { id: string }) {
  const peering = peerings.value.get(id);
  if (peering === undefined) {
    return connection.value === 'loading' ? null : (
      <Empty title="There is no such peering of this tenant, or it has been gone for long.">
        <a href={hrefOf('peerings')}>All peerings</a>
      </Empty>
    );
  }
  return (
    <>
      <div class="head">
        <h1>{pairOf(peering)}</h1>
        <State tone={toneOf(peering)}>{peering.phase}</State>
        <div class="actions">{can('peerings:write') && <Actions peering={peering} />}</div>
      </div>
      <Waiting peering={peering} />
      <div class="two">
        <PeeringFacts peering={peering} />
        <Section title="Capacity">
          <PeeringCapacity peering={peering} />
        </Section>
      </div>
      <Conditions peering={peering} />
      <Lately peering={peering} />
      <LinkSection peering={peering} />
      <Commands peering={peering} />
      <Timeline subject={`peering/${id}`} />
    </>
  );
}

/** Which phases it has been through, and for how long it has been in this one. */
function Progress({ peering }: { peering: Peering }) {
  const entered = Object.entries(peering.phaseSince).sort(([, a], [, b]) => Date.parse(a) - Date.parse(b));
  const since = peering.phaseSince[peering.phase];
  return (
    <>
      <ol class="phases">
        {entered.map(([phase, at]) => (
          <li key={phase}>
            {phase}{' '}
            <span class="quiet">after {((Date.parse(at) - Date.parse(peering.createdAt)) / 1_000).toFixed(1)} s</span>
          </li>
        ))}
      </ol>
      {!isSettled(peering) && peering.phase !== 'Degraded' && since !== undefined && (
        <Elapsed key={peering.phase} since={Date.parse(since)} words={peering.phase} />
      )}
    </>
  );
}

function Actions({ peering }: { peering: Peering }) {
  const [open, setOpen] = useState(false);
  const { id, consumer, provider, phase, unpeerRequestedAt, resources, owner, across } = peering;
  if (phase === 'Gone') return null;
  const terms = new URLSearchParams({ consumer, provider, class: peering.class, ...resources });
  return (
    <>
      {owner.kind === 'broker' && across === undefined && unpeerRequestedAt === undefined && (
        <a href={`${hrefOf('peer')}?${terms}`}>Change terms</a>
      )}
      <button type="button" onClick={() => setOpen(true)}>
        {unpeerRequestedAt === undefined ? 'Unpeer' : 'Unpeer by force'}
      </button>
      {open && (
        <Confirm
          title={`Unpeer ${consumer} and ${provider}`}
          name={`${consumer} ${provider}`}
          submit="Unpeer"
          onClose={() => setOpen(false)}
          onConfirm={async () => {
            const force = unpeerRequestedAt !== undefined;
            put(await api.deletePeering({ path: { peering: id }, query: force ? { force } : {} }));
          }}
        >
          {unpeerRequestedAt === undefined ? (
            <p>
              Pods of {consumer} that run on {provider} are drained, the virtual node and the link go, and nothing is
              left on either side.
            </p>
          ) : (
            <p>
              It is being removed already. By force, a side that does not answer is taken for dead; what cannot be
              removed there is listed.
            </p>
          )}
        </Confirm>
      )}
    </>
  );
}

/** What is waited for, and what a person can do about it. */
function Waiting({ peering }: { peering: Peering }) {
  const steps = [...new Set(peering.conditions.filter(({ status }) => status !== 'True').map(({ action }) => action))];
  return (
    <Section title="Waiting for">
      <p role="status">{peering.waitingFor}</p>
      <Progress peering={peering} />
      {steps.filter((step) => step !== '').length > 0 && (
        <>
          <h3>Next step</h3>
          <ul>
            {steps
              .filter((step) => step !== '')
              .map((step) => (
                <li key={step}>{step}</li>
              ))}
          </ul>
        </>
      )}
      {peering.leftBehind.length > 0 && (
        <>
          <h3>Left behind, because a side was dead</h3>
          <ul>
            {peering.leftBehind.map((what) => (
              <li key={what}>{what}</li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}

const PeeringFacts = ({ peering }: { peering: Peering }) => {
  const { across, owner } = peering;
  return (
    <Section title="Facts">
      <Facts
        rows={[
          [
            'Consumer',
            across?.side === 'provider' ? (
              `${peering.consumer} of ${across.peerTenant}`
            ) : (
              <ClusterLink name={peering.consumer} key="c" />
            ),
          ],
          [
            'Provider',
            across?.side === 'consumer' ? (
              `${peering.provider} of ${across.peerTenant}`
            ) : (
              <ClusterLink name={peering.provider} key="p" />
            ),
          ],
          ['Virtual node', <code key="node">{peering.nodeName}</code>],
          ['Class', peering.class],
          [
            'Labels',
            <EditableLabels
              key="labels"
              of={peering.labels}
              what={pairOf(peering)}
              mayEdit={can('peerings:write') && peering.phase !== 'Gone'}
              onSave={async (labels) => {
                const path = { peering: peering.id };
                const saved = await save({
                  from: peering,
                  what: 'the labels',
                  fields: (of) => of.labels,
                  wanted: labels,
                  read: async () => (await api.getPeering({ path })) ?? peering,
                  write: (ifVersion) => api.changePeering({ path, body: { labels } }, { ifVersion }),
                  isStale,
                });
                put(saved);
              }}
            />,
          ],
          ['Link', linkText(peering)],
          [
            'Owner of its terms',
            owner.kind === 'broker' ? 'this API' : `Peering object ${owner.name ?? ''} in the consumer`,
          ],
          across !== undefined && ['Agreed by', across.by],
          ['Asked for', <Time key="created" at={peering.createdAt} />],
          peering.unpeerRequestedAt !== undefined && [
            'Unpeering since',
            <Time key="end" at={peering.unpeerRequestedAt} />,
          ],
          ['ID', <code key="id">{peering.id}</code>],
        ]}
      />
    </Section>
  );
};

const ClusterLink = ({ name }: { name: string }) => <a href={hrefOf('cluster', name)}>{name}</a>;

const PeeringCapacity = ({ peering: { granted, resources } }: { peering: Peering }) => (
  <>
    <Facts
      rows={[
        ['Asked for', quantities(resources, 'as much as the provider gives')],
        ['Granted', quantities(granted, 'nothing yet')],
      ]}
    />
    {granted !== undefined && Object.keys(resources).length > 0 && (
      <Bars part={granted} whole={resources} words="granted" mayFill />
    )}
  </>
);

const conditionTone = ({ status }: Condition) =>
  status === 'True'
    ? (['good', 'holds'] as const)
    : status === 'False'
      ? (['warn', 'waits'] as const)
      : (['off', 'unknown'] as const);

function Conditions({ peering }: { peering: Peering }) {
  const sides = [
    ['consumer', `Consumer ${peering.consumer}`],
    ['provider', `Provider ${peering.provider}`],
    ['both', 'Both'],
  ] as const;
  return (
    <div class="two">
      {sides.map(([side, title]) => {
        const own = peering.conditions.filter((condition) => condition.side === side);
        return own.length === 0 ? null : (
          <Section key={side} title={title}>
            <ul class="timeline">
              {own.map((condition) => {
                const [tone, word] = conditionTone(condition);
                return (
                  <li key={condition.type}>
                    <State tone={tone}>{word}</State>
                    <span>
                      <strong>{condition.type}</strong> <span class="quiet">{condition.reason}</span>, since{' '}
                      <Time at={condition.since} />
                      {condition.message !== '' && <div>{condition.message}</div>}
                      {condition.action !== '' && condition.status !== 'True' && (
                        <div>Next step: {condition.action}</div>
                      )}
                    </span>
                  </li>
                );
              })}
            </ul>
          </Section>
        );
      })}
    </div>
  );
}

const Commands = ({ peering: { consumer, provider } }: { peering: Peering }) => (
  <Section title="Commands">
    <Command line={`isthmus describe peering ${consumer} ${provider}`} />
    <Command line={`kubectl --kubeconfig ${consumer}.kubeconfig get nodes`} />
    <Command line={`isthmus offload namespace shop --kubeconfig ${consumer}.kubeconfig`} />
    <Command line={`isthmus unpeer ${consumer} ${provider} --wait`} />
  </Section>
);
