/** What is wrong between agents and their broker. Pure. */
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import type { Finding } from '../causes.ts';
import type { DoctorFacts } from '../facts.ts';
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

/** What the broker itself says, where this command is logged in. */
export function asked({ broker, clusters }: DoctorFacts): Finding[] {
  if (broker === undefined) return [];
  const at = clusters[0]?.cluster ?? 'the broker';
  if (broker.failure !== undefined) {
    return [
      {
        code: 'broker_away',
        at: 'the broker',
        text: `the broker ${broker.url} does not answer this command`,
        evidence: [broker.failure],
        todo: `see that it runs: \`curl --insecure ${broker.url}/healthz\`; log in again with \`isthmus login\` when it refuses the key`,
      },
    ];
  }
  const open = broker.conditions.filter(({ status }) => status === 'False');
  const [first] = open;
  if (first === undefined) return [];
  return [
    {
      code: 'other_warning',
      at: first.side === 'both' ? at : first.side,
      text: `the broker says of the peering: ${first.type}: ${first.message}`,
      evidence: open.map(({ side, type, message }) => `${side}, ${type}: ${message}`),
      todo: first.action === '' ? 'wait; `isthmus describe peering` says what is awaited' : first.action,
    },
  ];
}
