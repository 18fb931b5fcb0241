/** kubectl from a node of the consumer, through the link and the provider's front door, with what the provider tells that consumer and nothing else. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { secrets } from '#shared/domain/core-kinds.ts';
import { authenticationKeysSecret, isthmusAnnotation, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inNode } from '#test/testbed/node-config.ts';
import { consumer, patience, provider, type Stage } from '../whole-clusters/stage.ts';

const file = 'door.kubeconfig';

/** Opens the front door to the consumer, asks the API server for the name of the caller, and closes the door again. */
export async function callerByDoor(stage: Stage, namespace: string): Promise<string> {
  const api = stage.api(provider);
  const [tenant] = await api.list(tenants, { namespace });
  const ref = { namespace, name: tenant?.metadata.name ?? '' };
  const annotate = (value: string | null) =>
    api.mergePatch(tenants, ref, { metadata: { annotations: { [isthmusAnnotation.frontDoor]: value } } });
  const toldWith = (has: 'sealedToken' | 'signedCRT') =>
    eventually(
      `${provider} to tell ${has}`,
      async () => {
        const { authParams } = (await api.get(tenants, ref))?.status ?? {};
        return authParams?.[has] === undefined ? undefined : authParams;
      },
      patience,
    );
  await annotate('true');
  const { apiServer = '', ca = '', signedCRT = '' } = await toldWith('signedCRT');
  const keys = await stage.api(consumer).get(secrets, { namespace: systemNamespace, name: authenticationKeysSecret });
  const kubeconfig = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'door' },
    clusters: [{ name: 'door', cluster: { server: apiServer, 'certificate-authority-data': ca } }],
    users: [
      {
        name: 'door',
        user: { 'client-certificate-data': signedCRT, 'client-key-data': keys?.data?.privateKey ?? '' },
      },
    ],
    contexts: [{ name: 'door', context: { cluster: 'door', user: 'door' } }],
  };
  const { dir, nodes } = stage.world.cluster(consumer);
  const [node] = nodes;
  writeFileSync(path.join(dir, 'logs', file), JSON.stringify(kubeconfig), { mode: 0o600 });
  const ask = ['kubectl', `--kubeconfig=${inNode.cluster}/logs/${file}`, 'auth', 'whoami'];
  const caller = await eventually(
    'the door to answer',
    () => node?.exec(`${inNode.bin}/kubebox`, [...ask, '-o', 'jsonpath={.status.userInfo.username}']),
    patience,
  );
  await annotate(null);
  await toldWith('sealedToken');
  return caller;
}
