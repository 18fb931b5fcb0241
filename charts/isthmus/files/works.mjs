// Ends with 0 once the installation works: the API server reaches the agent, and IPAM has granted the ranges of this cluster.
import { ask, until } from './api.mjs';

const { WITHIN_SECONDS: seconds = '120' } = process.env;
/** The hook refuses it for its namespace; nothing is kept where the API server does not ask. */
const refused = {
  apiVersion: 'offloading.liqo.io/v1beta1',
  kind: 'NamespaceOffloading',
  metadata: { name: 'offloading', namespace: 'liqo' },
  spec: { podOffloadingStrategy: 'Local', namespaceMappingStrategy: 'DefaultName' },
};

async function hooks() {
  const path = '/apis/offloading.liqo.io/v1beta1/namespaces/liqo/namespaceoffloadings?dryRun=All';
  const { status, body } = await ask(path, { method: 'POST', object: refused });
  if (status === 201) return 'the agent has not registered its webhooks';
  if (/namespace_reserved/.test(body.message)) return undefined;
  return `the API server does not get an answer from the agent: ${body.message}`;
}

async function ranges() {
  const { status, body } = await ask('/apis/ipam.liqo.io/v1alpha1/namespaces/liqo/networks');
  if (status !== 200) return `the API server answers ${status} for Networks: ${body.message}`;
  const waiting = body.items.filter(({ status }) => status?.cidr === undefined);
  return waiting.length === 0
    ? undefined
    : `no range yet for Network ${waiting.map(({ metadata }) => metadata.name).join(', ')}`;
}

const missing = await until(Number(seconds), async () => (await hooks()) ?? (await ranges()));
if (missing === undefined)
  console.log('Isthmus works: the API server reaches the agent, and the ranges of this cluster are granted');
else {
  console.error(
    `Isthmus does not work after ${seconds} s: ${missing}. Look at it with \`kubectl -n liqo describe pods\` and \`isthmus doctor\`.`,
  );
  process.exitCode = 1;
}
