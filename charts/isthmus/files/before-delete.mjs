// Ends with 1 while Isthmus is in use: hooks are registered, or objects would wait for an agent that helm takes away.
import { ask } from './api.mjs';

const admission = '/apis/admissionregistration.k8s.io/v1';
const left = [];

/** The items of a list; those of kinds that are not there are none. */
async function listed(path) {
  const { status, body } = await ask(path);
  if (status === 200) return body.items ?? [];
  if (status !== 404) left.push(`${path} (the API server answers ${status})`);
  return [];
}

/** Of all kinds at a time, so that a cluster with many objects fits into the memory of this pod. */
const pageSize = 200;
const metadataOnly = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';

/** How many objects at `path` have a finalizer. Begins again where a page came too late for the API server. */
async function heldAt(path) {
  let [held, next] = [0, ''];
  for (;;) {
    const { status, body } = await ask(`${path}?limit=${pageSize}${next && `&continue=${encodeURIComponent(next)}`}`, {
      accept: metadataOnly,
    });
    if (status === 410 && next) [held, next] = [0, ''];
    else if (status !== 200) {
      if (status !== 404) left.push(`${path} (the API server answers ${status})`);
      return held;
    } else {
      held += (body.items ?? []).filter(({ metadata }) => (metadata.finalizers ?? []).length > 0).length;
      next = body.metadata?.continue ?? '';
      if (!next) return held;
    }
  }
}

for (const kind of ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration']) {
  const { status } = await ask(`${admission}/${kind.toLowerCase()}s/isthmus-webhook`);
  if (status === 200) left.push(`${kind} isthmus-webhook`);
  else if (status !== 404) left.push(`${kind} isthmus-webhook (the API server answers ${status})`);
}
/** Those of this chart: former versions of Liqo left others, which no agent of ours waits for. */
const ours = /^((authentication|core|ipam|networking|offloading)\.liqo\.io|isthmus\.dev)$/;
const definitions = await listed('/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
/** At once: the first list of each kind may take a second. */
const counts = await Promise.all(
  definitions.map(async ({ spec }) => {
    if (!ours.test(spec.group)) return [];
    const held = await heldAt(`/apis/${spec.group}/${spec.versions[0].name}/${spec.names.plural}`);
    return held > 0 ? [`${held} ${spec.names.kind}`] : [];
  }),
);
left.push(...counts.flat());
const namespaces = '/api/v1/namespaces';
// `isthmus uninstall` keeps tenant namespaces unless it purges, and takes the namespace of the agent away last.
if ((await listed(`${namespaces}?fieldSelector=metadata.name=liqo`)).length > 0)
  for (const { metadata } of await listed(`${namespaces}?labelSelector=liqo.io/tenant-namespace`))
    left.push(`Namespace ${metadata.name}`);
if (left.length > 0) {
  console.error(
    `Isthmus is still in this cluster: ${left.join(', ')}. Run \`isthmus uninstall --kubeconfig FILE\` first (\`isthmus leave\` where it has joined a broker), then \`helm uninstall\` again.`,
  );
  process.exitCode = 1;
}
