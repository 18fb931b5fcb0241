/** Restricted credentials of a provider: made by us or by liqoctl, used for `peer` and `unpeer`, and taken back. */
import { describe, expect, test } from 'vitest';
import { isthmus } from '#cli/captured-io.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import { namespaces, secrets } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import { peer, unpeer } from '../liqoctl/peer.ts';
import { deletePeeringUser, generatePeeringUser } from '../liqoctl/peering-user.ts';
import type { Target } from '../liqoctl/requests.ts';
import type { Stage } from '../stage.ts';

interface RulesReview {
  readonly status: {
    readonly resourceRules: readonly { readonly verbs: readonly string[]; readonly resources?: readonly string[] }[];
  };
}

/** 5 s are promised; a machine that does everything at once may take longer. */
const soon = { withinMs: 20_000 } as const;

export function peeringUsers(on: () => Stage): void {
  const [rome, milan] = [() => on().rome, () => on().milan];
  describe('a peering user', () => {
    const cli = (line: string) => isthmus(`${line} --kubeconfig ${milan().server.kubeconfigPath}`.split(' '));
    let restricted: Target;

    test('is refused for the cluster itself, and made for a consumer', async () => {
      expect((await cli('generate peering-user milan')).code).toBe(2);
      const { code, out, err } = await cli('generate peering-user rome');
      expect(code, err).toBe(0);
      const connection = await connectKubeconfig(out);
      restricted = { ...on().target(milan()), api: createKubeApi(connection, { clock: systemClock, log: silentLog }) };
      await eventually('rights', () => restricted.api.list(tenants, { namespace: 'liqo-tenant-rome' }));
      expect((await cli('generate peering-user rome')).code).toBe(5);
    });

    test('may not look anywhere else', async () => {
      await expect(restricted.api.list(namespaces)).rejects.toMatchObject({ code: 'kube_forbidden' });
      await expect(restricted.api.list(secrets, { namespace: 'liqo' })).rejects.toMatchObject({
        code: 'kube_forbidden',
      });
      await expect(restricted.api.list(foreignClusters)).rejects.toMatchObject({ code: 'kube_forbidden' });
    });

    test('may watch nothing, since a watch would outlive its rights', async () => {
      const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
      const kind = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview' };
      for (const namespace of ['liqo', 'liqo-tenant-rome']) {
        const { status } = await restricted.api.postPath<RulesReview>(path, { ...kind, spec: { namespace } });
        const ours = status.resourceRules.filter(({ resources = [] }) =>
          resources.some((one) => /^(configmaps|tenants)$/.test(one)),
        );
        expect([namespace, ours.length > 0]).toEqual([namespace, true]);
        expect(
          status.resourceRules.filter(({ verbs }) => verbs.some((verb) => verb === 'watch' || verb === '*')),
        ).toEqual([]);
      }
    });

    test('peers and unpeers with these rights alone', async () => {
      await peer(on().target(rome()), restricted, { serviceType: 'NodePort', resources: { cpu: '2' } });
      await unpeer(on().target(rome()), restricted);
      await on().nothingShared();
    }, 240_000);

    test('made by liqoctl is known to us, and is taken back by liqoctl', async () => {
      const { commonName, kubeconfig } = await generatePeeringUser(on().target(milan()), 'florence', milan().server.ca);
      expect((await cli('generate peering-user florence')).code).toBe(5);
      const connection = await connectKubeconfig(kubeconfig);
      const api = createKubeApi(connection, { clock: systemClock, log: silentLog });
      // The API server knows of new rights a moment later.
      const seen = await eventually('rights', () => api.list(tenants, { namespace: 'liqo-tenant-florence' }));
      expect(seen).toEqual([]);
      await deletePeeringUser(on().target(milan()), 'florence');
      const refused = expect.objectContaining({ code: 'kube_forbidden', message: expect.stringContaining(commonName) });
      await eventually(
        'the refusal',
        async () => {
          const seen = await api.list(tenants, { namespace: 'liqo-tenant-florence' }).catch((error: unknown) => error);
          expect(seen).toEqual(refused);
          return true;
        },
        soon,
      );
      connection.close();
      await milan().api.delete(namespaces, { name: 'liqo-tenant-florence' });
    }, 60_000);

    test('has no rights any more soon after it is taken back', async () => {
      expect((await cli('delete peering-user rome')).code).toBe(0);
      await eventually(
        'the refusal',
        () =>
          restricted.api.list(tenants, { namespace: 'liqo-tenant-rome' }).then(
            () => false,
            (error: { code?: string }) => error.code === 'kube_forbidden',
          ),
        soon,
      );
      expect((await cli('delete peering-user rome')).out).toContain('has no peering user');
      await on().withoutNamespaces();
    }, 90_000);
  });
}
