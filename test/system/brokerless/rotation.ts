/** A consumer gets a new key, and with it new certificates for its control plane and its slice, while one of its pods runs next door. */
import { beforeAll, describe, expect, test } from 'vitest';
import { pods, secrets } from '#shared/domain/core-kinds.ts';
import { authenticationKeysSecret, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { unoffloadNamespace } from '#test/e2e/liqoctl/offload.ts';
import { eventually } from '#test/harness/eventually.ts';
import { consumer, patience, provider } from '../whole-clusters/stage.ts';
import type { Ground } from './ground.ts';
import { answersExec, credentials, here, lives, startSteady, steady } from './steady-pod.ts';

export function rotation(on: () => Ground): void {
  const stage = () => on().stage;

  const keys = async () =>
    (await stage().api(consumer).get(secrets, { namespace: systemNamespace, name: authenticationKeysSecret }))?.data;

  describe('a rotation of the key of the consumer', () => {
    let before: readonly unknown[] = [];

    beforeAll(async () => {
      await on().join();
      await on().remember();
      await stage().mustPeer();
      await stage().mustOffload(here, '--strategy', 'Remote');
      await startSteady(stage());
      before = await lives(stage());
    }, 240_000);

    test('brings both kinds of credentials new certificates, and touches neither pod nor node', async () => {
      const [former, held] = [await keys(), await credentials(stage())];
      await stage().world.mustIsthmus('rotate-key', '--kubeconfig', stage().world.cluster(consumer).kubeconfigPath);
      await stage().world.join(consumer);
      await eventually(
        'the former key to be forgotten',
        async () => {
          const now = (await keys()) ?? {};
          expect(Object.keys(now).sort()).toEqual(['privateKey', 'publicKey', 'succession']);
          return now.publicKey !== former?.publicKey;
        },
        patience,
      );
      await eventually(
        'both kubeconfigs to be others',
        async () => (await credentials(stage())).every((one, at) => one !== undefined && one !== held[at]),
        patience,
      );
      await eventually('a command in the pod, through the new credentials', () => answersExec(stage()), patience);
      expect(await lives(stage())).toEqual(before);
    });

    test('and leaves nothing behind but the new key when the peering ends', async () => {
      await stage().world.mustIsthmus('unpeer', consumer, provider, '--wait');
      await stage().api(consumer).delete(pods, { namespace: here, name: steady });
      await unoffloadNamespace(on().target(consumer), here);
      await on().asBefore();
    });
  });
}
