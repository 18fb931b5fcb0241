/** What is wrong between agents and their broker. Pure. */
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import type { Finding } from '../causes.ts';
import type { BrokerSaid, DoctorFacts } from '../facts.ts';
import type { Rule } from './rule.ts';

const refusals =
  /unauthenticated|signature_invalid|cluster_unknown|cluster_key_known|revoked|join_token|\b401\b|\b403\b|forbidden|suspended/i;

export const brokerLink: Rule = ({ cluster, facts, kubectl }) => {
  const { broker } = facts.status;
  if (broker === undefined || broker.status?.connected === true) return [];
  const conditions = broker.status?.conditions ?? [];
  const said = conditions
    .filter(({ status }) => status !== 'True')
    .map(({ type, reason, message }) => `${type}: ${reason ?? ''} ${message ?? ''}`.trim());
  const evidence = said.length > 0 ? said : ['BrokerLink broker: no exchange yet'];
  const flags = kubectl.replace(/^kubectl /, '');
  if (said.some((one) => refusals.test(one))) {
    return [
      {
        code: 'broker_refuses',
        at: cluster,
        text: `the broker ${broker.spec.url} does not accept the agent of ${cluster}`,
        evidence,
        todo: `enrol it again: \`isthmus join ${cluster} ${flags}\``,
      },
    ];
  }
  return [
    {
      code: 'broker_away',
      at: cluster,
      text: `the agent of ${cluster} does not reach the broker ${broker.spec.url}; running peerings go on`,
      evidence,
      todo: `see that the broker runs and that pods of ${cluster} reach ${broker.spec.url}; \`${kubectl} --namespace ${systemNamespace} logs deployment/isthmus-agent --tail 50\``,
    },
  ];
};

/** What the broker itself says, where this command is logged in. Without a cluster that answered it is all there is, and no mere warning. */
export function asked({ broker, clusters }: DoctorFacts): Finding[] {
  if (broker === undefined) return [];
  // Agents hear of it at their next exchange, minutes later.
  if (broker.failure !== undefined && /is suspended/.test(broker.failure)) {
    return [
      {
        code: 'broker_refuses',
        at: 'the broker',
        text: `the broker ${broker.url} accepts neither this command nor the agents of its tenant, which is suspended`,
        evidence: [broker.failure],
        todo: 'have the operator of the broker resume it with `isthmus tenant resume`; running peerings go on meanwhile',
      },
    ];
  }
  if (broker.failure !== undefined) {
    return [
      {
        code: 'broker_away',
        at: 'the broker',
        text: `the broker ${broker.url} does not answer this command`,
        evidence: [broker.failure],
        todo: `see that it runs: \`curl --insecure ${broker.url}/v1/health\`; log in again with \`isthmus login\` when it refuses the key`,
      },
    ];
  }
  const alone = !clusters.some(({ facts }) => facts !== undefined);
  const [consumer, provider] = broker.pair;
  if (broker.phase === undefined) return alone ? [notPeered(broker)] : [];
  const open = broker.conditions.filter(({ status }) => status === 'False' || (alone && status === 'Unknown'));
  const first = open.find(({ type }) => unheard.has(type)) ?? open[0];
  if (first === undefined) return [];
  const names = { consumer, provider, both: consumer };
  const evidence = open.map(
    ({ side, type, message }) => `${side === 'both' ? 'both ends' : names[side]}, ${type}: ${message}`,
  );
  return [
    {
      code: alone ? (unheard.has(first.type) ? 'agent_unheard' : 'peering_waits') : 'other_warning',
      at: names[first.side],
      text: `the broker says of the peering ${consumer} -> ${provider}, which is ${broker.phase}: ${first.type}: ${first.message}`,
      evidence: alone
        ? [...evidence, `seen by the broker alone: name the kubeconfigs of ${consumer} and ${provider} for more`]
        : evidence,
      todo:
        first.action === ''
          ? `wait; \`isthmus describe peering ${consumer} ${provider}\` says what is awaited`
          : first.action,
    },
  ];
}

const unheard: ReadonlySet<string> = new Set(['ConsumerOnline', 'ProviderOnline']);

const notPeered = ({ url, pair: [consumer, provider] }: BrokerSaid): Finding => ({
  code: 'not_peered',
  at: consumer,
  text: `the broker knows no peering ${consumer} -> ${provider}`,
  evidence: [`${url} lists none of this pair in this order for this login`],
  todo: `\`isthmus get peerings\` lists those that there are; \`isthmus peer ${consumer} ${provider}\` makes this one`,
});
