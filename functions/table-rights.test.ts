/** Rights on ways that few requests take, walked by the use cases behind the functions. */
import { expect, test } from 'vitest';
import { newAgentKeys } from '#control/testing/agent-keys.ts';
import { adminOf, createBrokerClusters, origin } from '#control/testing/broker-clusters.ts';
import { createApiFixture } from './testing/api-fixture.ts';
import { createTableGuard } from './testing/table-guard.ts';

async function peered() {
  const guard = createTableGuard();
  const broker = createBrokerClusters({ wrap: guard.guarded });
  const admin = adminOf('acme');
  for (const id of ['rome', 'milan']) await broker.join(id, { tenant: 'acme' });
  const terms = { consumer: 'rome', provider: 'milan', resources: { cpu: '1' }, labels: { team: 'a' } };
  const { peering } = await broker.control.peerings.request(admin, terms);
  const phase = async () => (await broker.control.peerings.get(admin, peering.id)).phase;
  await broker.until(async () => (await phase()) === 'Ready');
  return { ...broker, guard, admin, phase };
}

const rome = { tenant: 'acme', clusterId: 'rome' };

test.each(['$connect', '$default'])(
  '%s may look at the peerings of an agent that is back from silence',
  async (route) => {
    const { guard, control, clock, phase } = await peered();
    clock.advance(3_600_000);
    await control.peerings.sweep();
    const silent = await phase();
    await guard.asFunctionOf(route, () => control.clusters.heard(rome));
    await guard.asFunctionOf(route, () => control.clusters.heard({ ...rome, clusterId: 'milan' }));
    expect([silent, await phase()]).toEqual(['Degraded', 'Ready']);
  },
);

test('$disconnect may look at the peerings of the agent that is gone', async () => {
  const { guard, control, admin } = await peered();
  await guard.asFunctionOf('$disconnect', () => control.clusters.lost(rome));
  expect(await control.clusters.get(admin, 'rome')).toMatchObject({ id: 'rome' });
});

test('the sweep may look at peerings of agents that went silent, at deletions and at webhooks', async () => {
  const { guard, control, clock, phase } = await peered();
  clock.advance(3_600_000);
  await guard.asFunctionOf('schedule-sweep', async () => {
    await control.peerings.sweep();
    await control.tenants.deletion.sweep();
    await control.webhooks.deliverer?.announce();
  });
  expect(await phase()).toBe('Degraded');
});

test('a cluster that has peerings may enrol once more', async () => {
  const { call, join, tenant: made } = await createApiFixture();
  const [tenant, keys] = ['acme', newAgentKeys()];
  const key = await made(tenant);
  await join({ tenant, key, cluster: 'rome', keys });
  await join({ tenant, key, cluster: 'milan' });
  const body = { consumer: 'rome', provider: 'milan', resources: { cpu: '1' } };
  expect((await call({ method: 'POST', path: '/v1/peerings', key, body })).status).toBe(202);
  expect((await join({ tenant, key, cluster: 'rome', keys })).status).toBe(200);
});

test.each(['DELETE /v1/tenants/{tenant}', 'POST /v1/tenant/deletion/confirm'])(
  '%s may end the peerings of a tenant and remove all that it has',
  async (route) => {
    const { guard, control, admin, until } = await peered();
    await control.directory.publish(admin, { cluster: 'milan', region: 'eu-1' });
    const operator = { ...origin, principal: 'operator/op_test' };
    const remove = () =>
      guard.asFunctionOf(route, () =>
        control.tenants.deletion.byOperator(operator, 'acme', { confirm: 'acme', force: true }),
      );
    expect(await remove()).toMatchObject({ state: 'deleting' });
    await until(async () => (await control.peerings.list(admin)).items.length === 0);
    expect(await remove()).toEqual({ state: 'deleted', peerings: [] });
  },
);
