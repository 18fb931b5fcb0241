/** Sharing clusters with other tenants: invitations, requests in both directions, rules that approve by themselves. */
import type { ApprovalRule, Invitation, PeeringRequest } from '#shared/api-client/broker-api.ts';
import { all, api } from '../data/api.ts';
import { put } from '../data/live.ts';
import { goTo, hrefOf } from '../data/route.ts';
import type { Tone } from '../model/peering.ts';
import { labelsIn, labelTexts, quantities } from '../model/text.ts';
import { ActButton, ConfirmButton, FormButton } from '../parts/actions.tsx';
import { Command, Empty, State } from '../parts/bits.tsx';
import { actionsColumn, List, OwnList, timeColumn } from '../parts/list.tsx';
import { can, useLoad } from '../parts/load.ts';
import type { ShownColumn } from '../parts/table.tsx';
import { clusterField, days, resourceFields, resourcesOf, secondsOf, wordsIn } from './terms-fields.ts';

export const SharingPage = () => (
  <>
    <div class="head">
      <h1>Sharing</h1>
      <div class="actions">
        <a href={hrefOf('directory')}>Directory</a>
      </div>
    </div>
    {can('invitations:read') && <Invitations />}
    <Requests />
    <Rules />
  </>
);

const invitationTone: Readonly<Record<Invitation['state'], Tone>> = {
  open: 'good',
  used: 'off',
  expired: 'off',
  revoked: 'off',
};

function Invitations() {
  const { data, failure, reload } = useLoad(() => all((query) => api.listInvitations({ query })), [], 'invitation');
  const columns: readonly ShownColumn<Invitation>[] = [
    { key: 'cluster', title: 'Cluster', value: ({ cluster }) => cluster },
    {
      key: 'state',
      title: 'State',
      value: ({ state }) => state,
      cell: ({ state }) => <State tone={invitationTone[state]}>{state}</State>,
    },
    { key: 'limits', title: 'At most', value: ({ limits }) => quantities(limits) },
    {
      key: 'uses',
      title: 'Uses left',
      value: ({ usesLeft }) => usesLeft,
      cell: ({ uses, usesLeft }) => `${usesLeft} of ${uses}`,
    },
    {
      key: 'redeemed',
      title: 'Redeemed by',
      value: ({ redemptions }) => redemptions.map(({ tenant, cluster }) => `${tenant}/${cluster}`).join(', '),
    },
    { key: 'note', title: 'Note', value: ({ note }) => note },
    timeColumn('ends', 'Ends', ({ expiresAt }) => expiresAt),
    actionsColumn(
      ({ id, state }) =>
        state === 'open' &&
        can('invitations:write') && (
          <ActButton
            label="Revoke"
            about={id}
            onAct={async () => {
              await api.revokeInvitation({ path: { invitation: id } });
              await reload();
              return null;
            }}
          />
        ),
    ),
  ];
  return (
    <OwnList
      title="Invitations"
      permission="invitations:write"
      make={[<Invite key="invite" reload={reload} />, <Redeem key="redeem" />]}
      data={data}
      failure={failure}
      columns={columns}
      empty={
        <Empty title="No invitation yet.">
          <p>
            An invitation offers one of your clusters to the holder of its code, another tenant. The command for it:
          </p>
          <Command line="isthmus invite create milan --cpu 4 --memory 8Gi" />
        </Empty>
      }
    />
  );
}

const Invite = ({ reload }: { reload: () => Promise<void> }) => (
  <FormButton
    label="Invite"
    title="Offer a cluster"
    submit="Make the invitation"
    fields={[
      clusterField('cluster', 'Provider, a cluster of yours'),
      ...resourceFields,
      { name: 'uses', label: 'How many peerings it makes', kind: 'number', value: '1', required: true },
      days('days', 'Days until it ends', '7'),
      { name: 'note', label: 'Note', hint: 'For your tenant only.' },
    ]}
    onSubmit={async (values) => {
      const { code } = await api.createInvitation({
        body: {
          cluster: values.cluster ?? '',
          limits: resourcesOf(values),
          uses: Number(values.uses),
          expiresInSeconds: secondsOf(values.days),
          note: values.note ?? '',
        },
      });
      await reload();
      return (
        <>
          <p>The code, shown this once: its holder peers with the cluster. Give it to the other tenant, which types</p>
          <Command line={`isthmus redeem ${code} CLUSTER`} />
          <p>or redeems it in its own console:</p>
          <Command line={code} />
        </>
      );
    }}
  />
);

const Redeem = () => (
  <FormButton
    label="Redeem"
    title="Use an invitation of another tenant"
    submit="Peer"
    fields={[
      { name: 'code', label: 'Code', required: true, placeholder: 'isi_…' },
      clusterField('consumer', 'Consumer, a cluster of yours'),
      ...resourceFields,
    ]}
    onSubmit={async (values) => {
      const { code = '', consumer = '' } = values;
      const peering = await api.redeemInvitation({
        body: { code: code.trim(), consumer, resources: resourcesOf(values) },
      });
      put(peering);
      goTo('peering', peering.id);
      return null;
    }}
  />
);

const requestTone: Readonly<Record<PeeringRequest['state'], Tone>> = {
  pending: 'busy',
  approved: 'good',
  rejected: 'bad',
  expired: 'off',
  withdrawn: 'off',
};

const readRequests = async (): Promise<PeeringRequest[]> => {
  const both = ['received', 'sent'] as const;
  const lists = both.map((direction) => all((page) => api.listRequests({ query: { ...page, direction } })));
  return (await Promise.all(lists)).flat();
};

function Requests() {
  const { data, failure, reload } = useLoad(readRequests, [], 'request');
  const decide = (request: PeeringRequest) => {
    if (request.state !== 'pending' || !can('requests:write')) return null;
    const { id, direction, consumer } = request;
    if (direction === 'sent') {
      return (
        <ActButton
          label="Withdraw"
          about={id}
          onAct={async () => {
            await api.withdrawRequest({ path: { request: id } });
            await reload();
            return null;
          }}
        />
      );
    }
    const answer = { name: 'reason', label: 'What you say to it', hint: 'The asking tenant reads it.' };
    return (
      <div class="actions">
        <FormButton
          label="Approve"
          title={`Approve ${consumer}`}
          submit="Approve"
          fields={[answer]}
          onSubmit={async ({ reason = '' }) => {
            await api.approveRequest({ path: { request: id }, body: { reason } });
            await reload();
            return null;
          }}
        />
        <FormButton
          label="Reject"
          title={`Reject ${consumer}`}
          submit="Reject"
          fields={[answer]}
          onSubmit={async ({ reason = '' }) => {
            await api.rejectRequest({ path: { request: id }, body: { reason } });
            await reload();
            return null;
          }}
        />
      </div>
    );
  };
  const columns: readonly ShownColumn<PeeringRequest>[] = [
    { key: 'direction', title: 'Direction', value: ({ direction }) => direction },
    { key: 'consumer', title: 'Consumer', value: ({ consumerTenant, consumer }) => `${consumerTenant}/${consumer}` },
    { key: 'provider', title: 'Provider', value: ({ providerTenant, provider }) => `${providerTenant}/${provider}` },
    { key: 'asked', title: 'Asked for', value: ({ resources }) => quantities(resources, 'no bound') },
    { key: 'reason', title: 'Why', value: ({ reason }) => reason },
    {
      key: 'state',
      title: 'State',
      value: ({ state }) => state,
      cell: ({ state, answer }) => (
        <>
          <State tone={requestTone[state]}>{state}</State> {answer}
        </>
      ),
    },
    timeColumn('made', 'Made', ({ createdAt }) => createdAt),
    actionsColumn((request) =>
      request.peering === undefined ? decide(request) : <a href={hrefOf('peering', request.peering)}>Peering</a>,
    ),
  ];
  return (
    <List
      title="Requests"
      data={data}
      failure={failure}
      columns={columns}
      rowKey={({ id }) => id}
      order={{ key: 'made', down: true }}
      filterFrom={8}
      empty={
        <Empty title="No request yet.">
          <p>
            Other tenants ask for clusters that you publish in the <a href={hrefOf('directory')}>directory</a>; you ask
            for theirs there.
          </p>
        </Empty>
      }
    />
  );
}

function Rules() {
  const { data, failure, reload } = useLoad(
    () => all((query) => api.listApprovalRules({ query })),
    [],
    'approval-rule',
  );
  const columns: readonly ShownColumn<ApprovalRule>[] = [
    { key: 'name', title: 'Name', value: ({ name }) => name },
    { key: 'tenants', title: 'Tenants', value: ({ tenants }) => tenants.join(', ') },
    { key: 'labels', title: 'Labels of the cluster', value: ({ labels }) => labelTexts(labels).join(', ') || 'any' },
    { key: 'most', title: 'At most', value: ({ maxResources }) => quantities(maxResources) },
    { key: 'classes', title: 'Classes', value: ({ classes }) => classes.join(', ') },
    { key: 'used', title: 'Used', value: ({ used }) => used, cell: ({ used, uses }) => `${used} of ${uses}` },
    actionsColumn(
      ({ id, name }) =>
        can('approval-rules:write') && (
          <ConfirmButton
            label="Delete"
            title="Delete an approval rule"
            name={name}
            onConfirm={async () => {
              await api.deleteApprovalRule({ path: { rule: id } });
              await reload();
            }}
          >
            <p>Requests that it would have approved wait for a person from now on.</p>
          </ConfirmButton>
        ),
    ),
  ];
  return (
    <OwnList
      title="Approval rules"
      permission="approval-rules:write"
      make={<NewRule reload={reload} />}
      data={data}
      failure={failure}
      columns={columns}
      empty={
        <Empty title="No rule: every request waits for a person.">
          <Command line="isthmus requests rule create --help" />
        </Empty>
      }
    />
  );
}

const NewRule = ({ reload }: { reload: () => Promise<void> }) => (
  <FormButton
    label="Make a rule"
    submit="Make the rule"
    fields={[
      { name: 'name', label: 'Name', required: true },
      { name: 'tenants', label: 'Tenants', required: true, placeholder: 'acme, bolt', hint: '* for all.' },
      { name: 'labels', label: 'Labels that the published cluster has', placeholder: 'tier=gold' },
      ...resourceFields.map((field) =>
        field.hint ? { ...field, hint: 'A request has to name it and ask for no more.' } : field,
      ),
      { name: 'classes', label: 'Classes', value: 'default' },
      { name: 'uses', label: 'How many requests it approves', kind: 'number', value: '100', required: true },
    ]}
    onSubmit={async (values) => {
      await api.createApprovalRule({
        body: {
          name: values.name ?? '',
          tenants: wordsIn(values.tenants) ?? [],
          labels: labelsIn(values.labels ?? ''),
          maxResources: resourcesOf(values),
          classes: wordsIn(values.classes),
          uses: Number(values.uses),
        },
      });
      await reload();
      return null;
    }}
  />
);
