/** Certificates of seconds on two clusters that no broker knows: renewed while they see each other, and healed after they did not for longer than that. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { credentialsEndMs } from '#agent/peering/foreign-cluster/credentials.ts';
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import { offloadNamespace, unoffloadNamespace } from '#test/e2e/liqoctl/offload.ts';
import { peer, unpeer } from '#test/e2e/liqoctl/peer.ts';
import { eventually } from '#test/harness/eventually.ts';
import { consumer, patience, provider } from '../whole-clusters/stage.ts';
import type { Ground } from './ground.ts';
import { answersExec, credentials, here, lives, startSteady, steady } from './steady-pod.ts';

const lifeSeconds = 24;
/** From the first packet that passes again to each step of it: a deadline that tells a hang from slowness. The figure is printed. */
const healedWithinMs = 60_000;

export function separation(on: () => Ground): void {
  const stage = () => on().stage;
  const restartSigner = (...flags: readonly string[]) =>
    stage().world.cluster(provider).restartController('kube-controller-manager', flags);

  /** Of both certificates; negative once it has ended. */
  const leftMs = async (): Promise<readonly number[]> =>
    (await credentials(stage())).map((kubeconfig) => {
      const endMs = credentialsEndMs(Buffer.from(kubeconfig ?? '', 'base64').toString());
      return (endMs ?? 0) - Date.now();
    });

  /** Nothing passes between the nodes of the two, in either direction. */
  async function separate(): Promise<void> {
    const others = stage()
      .world.cluster(consumer)
      .nodes.map(({ ip }) => ip);
    for (const { exec } of stage().world.cluster(provider).nodes)
      for (const [hook, side] of [
        ['prerouting', 'saddr'],
        ['postrouting', 'daddr'],
      ] as const)
        for (const line of [
          'add table inet wall',
          `add chain inet wall ${hook} { type filter hook ${hook} priority -350 ; }`,
          `add rule inet wall ${hook} ip ${side} { ${others.join(', ')} } drop`,
        ])
          await exec('nft', [line]);
  }
  async function rejoin(): Promise<void> {
    // Also where there is none.
    for (const { exec } of stage().world.cluster(provider).nodes)
      for (const line of ['add table inet wall', 'delete table inet wall']) await exec('nft', [line]);
  }

  describe(`certificates of ${lifeSeconds} s, of clusters that no broker knows,`, () => {
    let before: readonly unknown[] = [];

    beforeAll(async () => {
      await restartSigner(`--cluster-signing-duration=${lifeSeconds}s`);
      const flags = { serviceType: 'NodePort', resources: { cpu: '2', memory: '2Gi', pods: '20' } } as const;
      await peer(on().target(consumer, 100), on().target(provider, 100), flags);
      await offloadNamespace(on().target(consumer), here, { strategy: 'Remote' });
      await startSteady(stage());
      before = await lives(stage());
    }, 180_000);
    afterAll(async () => {
      await rejoin();
      await restartSigner();
    });

    test('are each renewed twice without a moment in between, and the pod next door runs on', async () => {
      const seen = (await credentials(stage())).map((first) => new Set([first]));
      const ended: number[] = [];
      await eventually(
        'two renewals of each',
        async () => {
          ended.push(...(await leftMs()).filter((ms) => ms <= 0));
          for (const [at, now] of (await credentials(stage())).entries()) seen[at]?.add(now);
          return seen.every(({ size }) => size > 2);
        },
        { withinMs: 4 * lifeSeconds * 1_000, everyMs: 250 },
      );
      expect(ended).toEqual([]);
      expect(await lives(stage())).toEqual(before);
    });

    test('and when they end during a separation, everything is as before soon after it, without a person', async () => {
      await separate();
      await eventually('both to have ended', async () => (await leftMs()).every((ms) => ms < 0), {
        withinMs: 2 * lifeSeconds * 1_000,
        everyMs: 250,
      });
      const isNodeReady = async (): Promise<boolean> =>
        (await stage().api(consumer).get(nodes, { name: provider }))?.status?.conditions?.some(
          ({ type, status }) => type === 'Ready' && status === 'True',
        ) ?? false;
      await eventually('the node to be missed', async () => !(await isNodeReady()), patience);
      await rejoin();
      const from = performance.now();
      const within = { withinMs: healedWithinMs, everyMs: 100 };
      await eventually('certificates that last', async () => (await leftMs()).every((ms) => ms > 0), within);
      const renewedMs = performance.now() - from;
      await eventually('the node to be Ready', isNodeReady, within);
      await eventually('a command in the pod', () => answersExec(stage()), within);
      const healedMs = performance.now() - from;
      console.log(
        `after a separation: certificates after ${Math.round(renewedMs)} ms, all after ${Math.round(healedMs)} ms`,
      );
      expect(await lives(stage())).toEqual(before);
    });

    test('and nothing of it is left when the peering ends', async () => {
      await stage().api(consumer).delete(pods, { namespace: here, name: steady });
      await unoffloadNamespace(on().target(consumer), here);
      await unpeer(on().target(consumer), on().target(provider), { deleteNamespaces: true });
      await on().asBefore();
    });
  });
}
