/** From facts to ordered findings: the cause first. Pure. */
import { summarize } from '#cli/status/summary.ts';
import { byCause, type Finding, outranks } from './causes.ts';
import type { DoctorFacts, Looked } from './facts.ts';
import { deployment, ownPods, policies, refusedPods, rights, unsettled, webhooks } from './rules/agent.ts';
import { asked, brokerLink } from './rules/broker.ts';
import { openNodes, quotas, slices, virtualNodes } from './rules/capacity.ts';
import { claimedNodes, clock, crds, nodes, secondAgent, silence, together } from './rules/cluster.ts';
import { answers, credentials, known } from './rules/credentials.ts';
import { connectionTables, gateways, links, nodeProcesses, probes, ranges } from './rules/network.ts';
import type { Rule, View } from './rules/rule.ts';
import { dns, namespaces, pods } from './rules/workload.ts';

const rules: readonly Rule[] = [
  clock,
  crds,
  secondAgent,
  claimedNodes,
  rights,
  deployment,
  ownPods,
  refusedPods,
  nodes,
  webhooks,
  policies,
  connectionTables,
  nodeProcesses,
  ranges,
  gateways,
  links,
  probes,
  credentials,
  answers,
  known,
  slices,
  virtualNodes,
  openNodes,
  quotas,
  namespaces,
  pods,
  dns,
  brokerLink,
];

const answered = (one: Looked | undefined): one is Looked & Pick<View, 'facts'> => one?.facts !== undefined;

function viewsOf(all: DoctorFacts): View[] {
  return all.clusters.filter(answered).map((one) => {
    const other = all.clusters.find((another) => another !== one);
    return { ...one, all, ...(answered(other) && { other }) };
  });
}

/** Empty: nothing is wrong. No two have the same code, place and text. */
export function decide(facts: DoctorFacts): Finding[] {
  const views = viewsOf(facts);
  const found = [
    ...facts.clusters.flatMap(silence),
    ...together(facts),
    ...views.flatMap((view) => rules.flatMap((rule) => rule(view))),
    ...asked(facts),
  ];
  const distinct = [...new Map(found.map((one) => [`${one.code}\0${one.at}\0${one.text}`, one])).values()];
  return byCause([...distinct, ...warningsLeft(views, distinct)]);
}

/** What is worth a second look before an answer, because it may be the cause of what was found and its reason is not known yet. Empty: nothing. */
export function awaited(facts: DoctorFacts, [cause]: readonly Finding[]): readonly string[] {
  if (cause !== undefined && outranks(cause, 'agent_image')) return [];
  return viewsOf(facts).flatMap((view) => unsettled(view).map((what) => `${what} of ${view.cluster}`));
}

/** What `isthmus status` warns of, when nothing here explains it. */
function warningsLeft(views: readonly View[], found: readonly Finding[]): Finding[] {
  if (found.length > 0) return [];
  return views.flatMap(({ cluster, facts, all, kubectl }) => {
    const warnings = summarize(facts.status, all.clusters.length === 1 ? all.peer : undefined)?.warnings ?? [];
    const [first] = warnings;
    if (first === undefined) return [];
    return [
      {
        code: 'other_warning' as const,
        at: cluster,
        text: `${cluster} warns: ${first}`,
        evidence: warnings,
        todo: `\`isthmus status ${kubectl.replace(/^kubectl /, '')}\`, and \`isthmus support-bundle\` for a helper`,
      },
    ];
  });
}
