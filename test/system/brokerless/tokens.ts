/** A provider whose kube-controller-manager has no key to sign with: peered over a link by tokens, which are renewed, rotated, revoked, and carried in-band. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tokenOpener } from '#agent/peering/keys/token-opener.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { authenticationKeysSecret, isthmusAnnotation, name, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { unoffloadNamespace } from '#test/e2e/liqoctl/offload.ts';
import { eventually } from '#test/harness/eventually.ts';
import { revokeUntilRefused } from '#test/harness/until-refused.ts';
import { consumer, patience, provider } from '../whole-clusters/stage.ts';
import type { Ground } from './ground.ts';
import { answersExec, credentials, here, lives, startSteady } from './steady-pod.ts';
import { closeDoor, openDoor, turnedAway } from './wall.ts';

const noSigner: readonly string[] = ['--cluster-signing-cert-file=', '--cluster-signing-key-file='];
const there = name.tenantNamespace(consumer);
const credentialSecrets = ['isthmus-credential-peer', `isthmus-credential-slice-${provider}`];
/** The agent asks its signer for 30 s before it takes silence for an answer. */
const patient = { ...patience, withinMs: 120_000 };

export function tokens(on: () => Ground): void {
  const stage = () => on().stage;
  const restartSigner = (flags: readonly string[]) =>
    stage().world.cluster(provider).restartController('kube-controller-manager', flags);
  const keys = { namespace: systemNamespace, name: authenticationKeysSecret };

  /** The agent of the provider finds out again what its cluster gives. */
  async function findsOut(kind: string): Promise<void> {
    const forget = { metadata: { annotations: { [isthmusAnnotation.credentials]: null } } };
    await stage().api(provider).mergePatch(secrets, keys, forget);
    await eventually(
      `${provider} to give a ${kind}`,
      async () =>
        (await stage().api(provider).get(secrets, keys))?.metadata.annotations?.[isthmusAnnotation.credentials] ===
        kind,
      patient,
    );
  }

  const bothChange = (held: readonly (string | undefined)[]) =>
    eventually(
      'both kubeconfigs to be others',
      async () => (await credentials(stage())).every((one, at) => one !== undefined && one !== held[at]),
      patience,
    );

  /** As the consumer's agent logs in. */
  async function login(): Promise<KubeApi> {
    const ref = {
      namespace: name.tenantNamespace(provider),
      name: name.kubeconfigSecret(name.controlPlaneIdentity(provider)),
    };
    const secret = await stage().api(consumer).get(secrets, ref);
    const kubeconfig = Buffer.from(secret?.data?.kubeconfig ?? '', 'base64').toString();
    const openToken = tokenOpener(stage().api(consumer), systemNamespace);
    return createKubeApi(await connectKubeconfig(kubeconfig, { isFromCluster: true, openToken }), {
      clock: systemClock,
      log: silentLog,
    });
  }

  describe('a provider that signs no certificates', () => {
    let before: readonly unknown[] = [];
    const exec = (how: string) => eventually(`a command in the pod, ${how}`, () => answersExec(stage()), patience);

    beforeAll(async () => {
      await on().join();
      await restartSigner(noSigner);
      await findsOut('token');
      await on().remember();
      await stage().mustPeer();
      await stage().mustOffload(here, '--strategy', 'Remote');
      await startSteady(stage());
    }, 300_000);
    afterAll(async () => {
      await openDoor(stage());
      await restartSigner([]);
      await findsOut('certificate');
    }, 180_000);

    test('is peered with by tokens alone: pods run there, are reached over the link, and take commands', async () => {
      for (const { spec } of await stage().api(consumer).list(identities)) {
        expect(spec.authParams.sealedToken).toBeDefined();
        expect(spec.authParams.signedCRT).toBeUndefined();
      }
      await on().crosses();
      await exec('by token');
      before = await lives(stage());
    });

    test('renews both tokens half a life after they were issued; the pod and the node stay', async () => {
      const held = await credentials(stage());
      const issuedAt = new Date(Date.now() - 13 * 3_600_000).toISOString();
      const older = { metadata: { annotations: { 'isthmus.dev/issued-at': issuedAt } } };
      for (const secret of credentialSecrets)
        await stage().api(provider).mergePatch(secrets, { namespace: there, name: secret }, older);
      await bothChange(held);
      await exec('by the new token');
      expect(await lives(stage())).toEqual(before);
    });

    test('gives tokens for the new key of a consumer that rotates its own', async () => {
      const held = await credentials(stage());
      const { kubeconfigPath } = stage().world.cluster(consumer);
      await stage().world.mustIsthmus('rotate-key', '--kubeconfig', kubeconfigPath);
      await stage().world.join(consumer);
      await bothChange(held);
      await exec('by the token for the new key');
      expect(await lives(stage())).toEqual(before);
    });

    test('ends access when their Secrets are deleted, and gives the consumer others', async () => {
      const api = await login();
      const held = await credentials(stage());
      await revokeUntilRefused(
        () => api.list(resourceSlices, { namespace: there }),
        async () => {
          for (const secret of credentialSecrets)
            await stage().api(provider).delete(secrets, { namespace: there, name: secret });
        },
      );
      await bothChange(held);
      await exec('by other tokens');
      expect(await lives(stage())).toEqual(before);
    });

    test('leaves nothing behind when the peering ends', async () => {
      await stage().world.mustIsthmus('unpeer', consumer, provider, '--wait');
      await stage().kubectl(consumer, ['-n', here, 'delete', 'pods', '--all', '--wait=false']);
      await unoffloadNamespace(on().target(consumer), here);
      await on().asBefore();
    });

    test('is peered with in-band, too: by tokens through the link, while its API server is closed to the consumer', async () => {
      await closeDoor(stage());
      const ask = ['peer', consumer, provider, '--cpu', '2', '--memory', '2Gi', '--pods', '20', '--in-band', '--wait'];
      await eventually(
        'the broker to have heard of the proxy, and the peering to be Ready',
        async () => {
          const { code, stderr } = await stage().world.isthmus(...ask);
          if (code !== 0) throw new Error(stderr);
          return true;
        },
        { withinMs: 180_000, everyMs: 1_000 },
      );
      for (const { spec } of await stage().api(consumer).list(identities)) {
        expect(spec.authParams.sealedToken).toBeDefined();
        expect(spec.authParams.proxyURL).toMatch(/^http:/);
      }
      await stage().mustOffload(here, '--strategy', 'Remote');
      await startSteady(stage());
      await exec('through the link');
      expect(await turnedAway(stage())).toBe(0);
      await stage().world.mustIsthmus('unpeer', consumer, provider, '--wait');
      await stage().kubectl(consumer, ['-n', here, 'delete', 'pods', '--all', '--wait=false']);
      await unoffloadNamespace(on().target(consumer), here);
    }, 400_000);
  });
}
