/** A consumer gets a new key, and with it new certificates for its control plane and its slice, while one of its pods runs next door. */
import { beforeAll, describe, expect, test } from 'vitest';
import { nodes, pods, secrets } from '#shared/domain/core-kinds.ts';
import { authenticationKeysSecret, name, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { unoffloadNamespace } from '#test/e2e/liqoctl/offload.ts';
import { eventually } from '#test/harness/eventually.ts';
import { consumer, isReady, patience, provider } from '../world/stage.ts';
import { container, pod } from '../world/workloads.ts';
import type { Ground } from './ground.ts';

const [here, there] = ['demo', 'demo-rome'] as const;
const steady = 'steady';

export function rotation(on: () => Ground): void {
  const stage = () => on().stage;

  /** What a pod that was touched would not keep. */
  async function lives(): Promise<readonly unknown[]> {
    const both = [
      await stage().api(consumer).get(pods, { namespace: here, name: steady }),
      await stage().api(provider).get(pods, { namespace: there, name: steady }),
    ];
    const node = await stage().api(consumer).get(nodes, { name: provider });
    return [
      ...both.map((one) => ({
        uid: one?.metadata.uid,
        containers: one?.status?.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount]),
      })),
      node?.metadata.uid,
    ];
  }
  const credentials = async (): Promise<readonly (string | undefined)[]> =>
    Promise.all(
      [name.controlPlaneIdentity(provider), name.sliceIdentity(provider)].map(async (identity) => {
        const ref = { namespace: name.tenantNamespace(provider), name: name.kubeconfigSecret(identity) };
        return (await stage().api(consumer).get(secrets, ref))?.data?.kubeconfig;
      }),
    );
  const keys = async () =>
    (await stage().api(consumer).get(secrets, { namespace: systemNamespace, name: authenticationKeysSecret }))?.data;

  describe('a rotation of the key of the consumer', () => {
    let before: readonly unknown[] = [];

    beforeAll(async () => {
      await stage().mustPeer();
      await stage().mustOffload(here, '--strategy', 'Remote');
      await stage().apply(consumer, pod(here, steady, [container(['serve'])]));
      await stage().podThat(consumer, [here, steady], 'is ready', isReady);
      before = await lives();
    }, 120_000);

    test('brings both kinds of credentials new certificates, and touches neither pod nor node', async () => {
      const [former, held] = [await keys(), await credentials()];
      await stage().world.mustIsthmus('rotate-key', '--kubeconfig', stage().world.cluster(consumer).kubeconfigPath);
      await stage().world.join(consumer);
      await eventually(
        'the former key to be forgotten',
        async () => {
          const now = (await keys()) ?? {};
          expect(Object.keys(now).sort()).toEqual(['privateKey', 'publicKey']);
          return now.publicKey !== former?.publicKey;
        },
        patience,
      );
      await eventually(
        'both kubeconfigs to be others',
        async () => (await credentials()).every((one, at) => one !== undefined && one !== held[at]),
        patience,
      );
      const url = 'http://localhost:8080/env';
      await eventually(
        'a command in the pod, through the new credentials',
        async () => (await stage().kubectl(consumer, ['-n', here, 'exec', steady, '--', 'get', url])).code === 0,
        patience,
      );
      expect(await lives()).toEqual(before);
    });

    test('and leaves nothing behind but the new key when the peering ends', async () => {
      await stage().world.mustIsthmus('unpeer', consumer, provider, '--wait');
      await stage().api(consumer).delete(pods, { namespace: here, name: steady });
      await unoffloadNamespace(on().target(consumer), here);
      await on().asBefore();
    });
  });
}
