/** A pod of the consumer that runs next door, and the credentials that lead there. */
import { nodes, pods, secrets } from '#shared/domain/core-kinds.ts';
import { name } from '#shared/domain/liqo-keys.ts';
import { consumer, isReady, provider, type Stage } from '../whole-clusters/stage.ts';
import { container, pod } from '../whole-clusters/workloads.ts';

export const here = 'demo';
const there = 'demo-rome';
export const steady = 'steady';

/** Of an offloaded namespace. */
export async function startSteady(stage: Stage): Promise<void> {
  await stage.apply(consumer, pod(here, steady, [container(['serve'])]));
  await stage.podThat(consumer, [here, steady], 'is ready', isReady);
}

/** What a pod that was touched would not keep. */
export async function lives(stage: Stage): Promise<readonly unknown[]> {
  const both = [
    await stage.api(consumer).get(pods, { namespace: here, name: steady }),
    await stage.api(provider).get(pods, { namespace: there, name: steady }),
  ];
  const node = await stage.api(consumer).get(nodes, { name: provider });
  return [
    ...both.map((one) => ({
      uid: one?.metadata.uid,
      containers: one?.status?.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount]),
    })),
    node?.metadata.uid,
  ];
}

/** The kubeconfigs of control plane and slice, base64. */
export const credentials = async (stage: Stage): Promise<readonly (string | undefined)[]> =>
  Promise.all(
    [name.controlPlaneIdentity(provider), name.sliceIdentity(provider)].map(async (identity) => {
      const ref = { namespace: name.tenantNamespace(provider), name: name.kubeconfigSecret(identity) };
      return (await stage.api(consumer).get(secrets, ref))?.data?.kubeconfig;
    }),
  );

/** Whether a command in that pod answers, through those credentials. */
export const answersExec = async (stage: Stage): Promise<boolean> =>
  (await stage.kubectl(consumer, ['-n', here, 'exec', steady, '--', 'get', 'http://localhost:8080/env'])).code === 0;
