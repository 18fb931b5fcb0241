import { expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { origin } from '../testing/broker-clusters.ts';
import { acme, bolt, twoTenants } from '../testing/two-tenants.ts';

const operator = { ...origin, principal: 'operator/ok_1' };

test.each([
  { deleted: 'acme', left: bolt },
  { deleted: 'bolt', left: acme },
])(
  'deleting $deleted ends its peering with another tenant, which is left with its own things alone',
  async ({ deleted, left }) => {
    const clusters = await twoTenants();
    const { control, store } = clusters;
    const { id } = await clusters.invited();
    await clusters.untilPhase(id, 'Ready');
    const { deletion } = control.tenants;
    await expect(deletion.byOperator(operator, deleted, { confirm: deleted })).rejects.toMatchObject({
      code: 'in_use',
    });
    await deletion.byOperator(operator, deleted, { confirm: deleted, force: true });
    await clusters
      .until(async () => (await deletion.sweep()) === 0)
      .catch((error: unknown) => {
        // The simulated agent of the deleted tenant is told that it is unknown.
        if (!['cluster_unknown', 'not_found', 'signature_invalid'].includes(codeOf(error) ?? '')) throw error;
      });
    expect((await control.peerings.get(left, id)).phase).toBe('Gone');
    await expect(control.tenants.operators.get(operator, deleted)).rejects.toMatchObject({ code: 'not_found' });
    const rest = await Promise.all(
      [
        '',
        '/peerings',
        '/with/acme',
        '/with/bolt',
        '/invitations',
        '/inbox',
        '/clusters',
        '/api-keys',
        '/audit',
        '/pairs',
      ].map(async (path) => (await store.query({ partition: `t/${deleted}${path}`, limit: 10 })).items),
    );
    expect(rest.flat().map(({ pk, sk }) => `${pk} ${sk}`)).toEqual([]);
  },
);
