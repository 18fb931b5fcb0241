/** The alerts that come with `--metrics`, as rule groups of Prometheus. Names and labels of the samples are those of `definitions.ts`. */
import { linkMetrics, controllerMetrics as of } from './definitions.ts';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: 'warning' | 'critical' };
  readonly annotations: { readonly summary: string; readonly description: string };
}

export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly Alert[];
}

const twoDays = 2 * 24 * 3_600;
const waitSeconds = 60;
const nearlyUsed = 0.9;

/** `cluster`: a label that a Prometheus of several clusters adds; without it all samples are of one. */
const rules: readonly Alert[] = [
  {
    alert: 'IsthmusLinkDown',
    expr: `${linkMetrics.connected.name} == 0`,
    for: '1m',
    labels: { severity: 'critical' },
    annotations: {
      summary: 'The link to {{ $labels.cluster_id }} is down.',
      description:
        'The peer has answered no ping through the tunnel for more than a minute, so pods of the two clusters do not reach each other. `isthmus doctor` names the cause.',
    },
  },
  {
    alert: 'IsthmusProviderSilent',
    expr: `${of.providerAnswers.name} == 0`,
    for: '1m',
    labels: { severity: 'critical' },
    annotations: {
      summary: 'The API server of {{ $labels.cluster_id }} does not answer.',
      description:
        'Virtual node {{ $labels.node_name }} cannot ask its provider. Pods there run on; changes, logs and new pods wait. See the Ready condition of that Node.',
    },
  },
  {
    alert: 'IsthmusCertificateEnds',
    expr: `${of.certificateEnd.name} - time() < ${twoDays}`,
    for: '10m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'Certificate {{ $labels.name }} for {{ $labels.cluster_id }} ends in {{ $value | humanizeDuration }}.',
      description:
        'Agents renew certificates after two thirds of their life; with the usual seven days this one should have been renewed. See the Renew object in its namespace. With certificates of less than six days this alert says nothing.',
    },
  },
  {
    alert: 'IsthmusPodsWait',
    expr: `${of.podWait.name} > ${waitSeconds}`,
    for: '0m',
    labels: { severity: 'warning' },
    annotations: {
      summary:
        'A pod on {{ $labels.node_name }} has waited {{ $value | humanizeDuration }} for its pod at the provider.',
      description:
        'The pod is bound, and the provider has not made it. Its conditions and events say why: quota, policy, a namespace that is not mapped, or a provider that is silent.',
    },
  },
  {
    alert: 'IsthmusQuotaNearlyUsed',
    expr: `${of.used.name} / (${of.granted.name} > 0) > ${nearlyUsed}`,
    for: '5m',
    labels: { severity: 'warning' },
    annotations: {
      summary: '{{ $value | humanizePercentage }} of {{ $labels.resource }} of slice {{ $labels.slice }} is used.',
      description:
        'Soon pods that need more {{ $labels.resource }} are refused. Ask for more in the ResourceSlice, or offload less.',
    },
  },
  {
    alert: 'IsthmusBrokerAway',
    expr: `${of.brokerConnected.name} == 0`,
    for: '5m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'The broker has been away for more than five minutes.',
      description:
        'Running peerings do not notice; new ones, changes of terms and ends wait. The condition Connected of the BrokerLink says why.',
    },
  },
  {
    alert: 'IsthmusNotLeading',
    expr: `max by (cluster) (${of.leading.name}) == 0 or absent(${of.leading.name})`,
    for: '2m',
    labels: { severity: 'critical' },
    annotations: {
      summary: 'No controller of Isthmus leads.',
      description:
        'Nothing is reconciled. Either no process of Deployment isthmus-agent runs, none can be scraped, or none can renew the Lease isthmus-agent.',
    },
  },
];

export const alertGroups: readonly RuleGroup[] = [{ name: 'isthmus', rules }];
