/** Connections with the rights that `isthmus join` gives to the agent, and no more: what a controller lacks fails its test. */
import { parse, stringify } from 'yaml';
import { typeOf } from '#cli/install/apply.ts';
import { agentName } from '#cli/install/manifests.ts';
import { agentRights } from '#cli/install/rights-manifests.ts';
import { createKubeApi } from '#kube/http/client.ts';
import type { ClusterConnection } from '#kube/http/connection.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { ApiServer } from './kube-apiserver.ts';

interface TokenReview {
  readonly status: { readonly token: string };
}

/** Gives the account its rights; the system namespace must exist. */
export async function giveAgentRights(api: KubeApi): Promise<void> {
  for (const object of agentRights()) await api.apply(typeOf(object), object, { fieldManager: 'isthmus-cli' });
}

/** Of the agent's ServiceAccount, after `giveAgentRights`. */
export async function connectAsAgent({ kubeconfig }: Pick<ApiServer, 'kubeconfig'>): Promise<ClusterConnection> {
  const administrator = await connectKubeconfig(kubeconfig);
  try {
    const api = createKubeApi(administrator, { clock: systemClock, log: silentLog });
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: agentName, namespace: systemNamespace },
      spec: { audiences: [], expirationSeconds: 7_200 },
    };
    const path = `/api/v1/namespaces/${systemNamespace}/serviceaccounts/${agentName}/token`;
    const { status } = await api.postPath<TokenReview>(path, request);
    const config = parse(kubeconfig) as { users: { user: unknown }[] };
    for (const entry of config.users) entry.user = { token: status.token };
    return await connectKubeconfig(stringify(config));
  } finally {
    administrator.close();
  }
}
