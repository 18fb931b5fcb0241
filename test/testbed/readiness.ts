/** What a cluster still waits for, in words, as its API server tells it. */
import { type Access, callApi } from './api-ready.ts';
import type { ClusterSpec } from './spec.ts';
import { storageDriver } from './storage-addons.ts';

export async function waitingFor(access: Access, spec: ClusterSpec): Promise<string | undefined> {
  interface Conditioned {
    metadata: { name: string };
    status?: { conditions?: { type: string; status: string; message?: string }[]; availableReplicas?: number };
  }
  const answer = await callApi(access, '/api/v1/nodes').catch(() => undefined);
  if (answer?.status !== 200) return 'the API server does not answer';
  for (const node of (JSON.parse(answer.body) as { items: Conditioned[] }).items) {
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready?.status !== 'True')
      return `node ${node.metadata.name} is not Ready: ${ready?.message ?? 'the kubelet has not reported'}`;
  }
  const dns = await callApi(access, '/apis/apps/v1/namespaces/kube-system/deployments/coredns').catch(() => undefined);
  const available = dns?.status === 200 && ((JSON.parse(dns.body) as Conditioned).status?.availableReplicas ?? 0) > 0;
  return available ? await waitingForStorage(access, spec) : 'cluster DNS is not available';
}

/** The kubelet says in its CSINode which drivers have registered. */
async function waitingForStorage(access: Access, { storage, nodes }: ClusterSpec): Promise<string | undefined> {
  if (!storage) return undefined;
  for (const { name } of nodes) {
    const answer = await callApi(access, `/apis/storage.k8s.io/v1/csinodes/${name}`).catch(() => undefined);
    const { spec } = JSON.parse(answer?.status === 200 ? answer.body : '{}') as {
      spec?: { drivers?: { name: string }[] };
    };
    if (!spec?.drivers?.some((driver) => driver.name === storageDriver))
      return `the kubelet of ${name} has not registered ${storageDriver}`;
  }
  return undefined;
}

/** By the Leases, which kubelets renew as soon as they start. */
export async function silentSince(
  access: Access,
  names: readonly string[],
  sinceMs: number,
): Promise<string | undefined> {
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  for (const name of names) {
    const answer = await callApi(access, `${leases}/${name}`).catch(() => undefined);
    if (answer?.status !== 200) return `node ${name} has no Lease`;
    const { spec } = JSON.parse(answer.body) as { spec?: { renewTime?: string } };
    if (!(Date.parse(spec?.renewTime ?? '') >= sinceMs)) return `the kubelet of ${name} has not reported yet`;
  }
  return undefined;
}
