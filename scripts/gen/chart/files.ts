/** What is generated of charts/isthmus besides its CustomResourceDefinitions. The rest of the chart is written by hand. */
import { stringify } from 'yaml';
import { agentImage, version } from '#cli/output/version.ts';
import { oldestKubernetes } from '#shared/domain/kubernetes-version.ts';
import { manifestsTemplate } from './manifests.ts';
import { valuesSchema, valuesYaml } from './values.ts';

const note = 'Written by `npm run gen`; edits are lost.';

const chart = {
  apiVersion: 'v2',
  name: 'isthmus',
  description:
    'Kubernetes clusters lend each other capacity: a provider cluster appears in a consumer cluster as one more node.',
  type: 'application',
  version,
  appVersion: version,
  // Providers add letters after their patch number, which is no number without -0.
  kubeVersion: `>=${oldestKubernetes}.0-0`,
};

/** Path in the repository to content. */
export const chartFiles = (): [file: string, text: string][] => [
  ['charts/isthmus/Chart.yaml', `# ${note}\n${stringify(chart, { lineWidth: 0 })}`],
  ['charts/isthmus/values.yaml', valuesYaml(agentImage)],
  ['charts/isthmus/values.schema.json', valuesSchema()],
  [
    'charts/isthmus/templates/manifests.yaml',
    `{{- /* ${note} From cli/install/manifests.ts. */}}\n${manifestsTemplate()}`,
  ],
];
