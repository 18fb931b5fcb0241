/** A name that two clusters of different tenants have: which of them can be a peer, and what the other one hears. */
import { describe, expect, test } from 'vitest';
import { adminOf } from '../../testing/broker-clusters.ts';
import { acme, bolt, corp, twoTenants, worldlyFacts } from '../../testing/two-tenants.ts';

describe('no cluster has two peers of one name', () => {
  test('a second tenant’s cluster of the same name is refused with the remedy, until the first has gone', async () => {
    const fixture = await twoTenants();
    const { control, invited, untilPhase } = fixture;
    const first = await invited();
    await untilPhase(first.id, 'Ready');
    await fixture.join('milan-of-corp', { tenant: 'corp', facts: worldlyFacts });
    await control.clusters.remove(corp, 'milan-of-corp', { force: true });
    fixture.milan.alive = true;
    const joinAs = createTwin(fixture);
    await joinAs('milan', 'corp');
    const { code } = await control.invitations.create(corp, { cluster: 'milan' });
    await expect(control.invitations.redeem(acme, { code, consumer: 'rome' })).rejects.toMatchObject({
      code: 'cluster_id_taken',
      message: expect.stringMatching(/milan of tenant bolt already.*under another name/),
    });
    await joinAs('rome', 'corp');
    const again = await control.invitations.create(bolt, { cluster: 'milan' });
    const refused = control.invitations.redeem(corp, { code: again.code, consumer: 'rome' });
    await expect(refused).rejects.toMatchObject({ code: 'cluster_id_taken' });
    // Of the other cluster's peers he learns that the name is taken, not by whom.
    await expect(refused).rejects.toMatchObject({ message: expect.not.stringContaining('acme') });
    expect((await control.invitations.get(bolt, again.invitation.id)).usesLeft).toBe(1);
    await control.peerings.unpeer(acme, first.id);
    await untilPhase(first.id, 'Gone');
    expect((await control.invitations.redeem(acme, { code, consumer: 'rome' })).created).toBe(true);
  });

  test('a name inside the tenant keeps a foreign one out, and the other way around', async () => {
    const fixture = await twoTenants();
    const joinAs = createTwin(fixture);
    await joinAs('milan', 'acme');
    const { control } = fixture;
    const own = { consumer: 'rome', provider: 'milan', resources: {} };
    const { peering } = await control.peerings.request(acme, own);
    const { code } = await control.invitations.create(bolt, { cluster: 'milan' });
    await expect(control.invitations.redeem(acme, { code, consumer: 'rome' })).rejects.toMatchObject({
      code: 'cluster_id_taken',
      message: expect.stringContaining('your own tenant'),
    });
    await control.clusters.remove(acme, 'milan', { force: true });
    for (let i = 0; i < 200; i += 1) {
      await fixture.rome.pull();
      fixture.rome.work(() => undefined);
      await fixture.rome.report();
      fixture.clock.advance(1_000);
      await control.peerings.sweep();
    }
    expect((await control.peerings.get(acme, peering.id)).phase).toBe('Gone');
    expect((await control.invitations.redeem(acme, { code, consumer: 'rome' })).created).toBe(true);
    await joinAs('milan', 'acme');
    await expect(
      control.peerings.request(acme, { consumer: 'milan', provider: 'rome', resources: {} }),
    ).rejects.toMatchObject({ code: 'cluster_id_taken' });
  });

  test('two clusters of the same name cannot peer', async () => {
    const fixture = await twoTenants();
    await createTwin(fixture)('milan', 'acme');
    const { code } = await fixture.control.invitations.create(bolt, { cluster: 'milan' });
    await expect(fixture.control.invitations.redeem(acme, { code, consumer: 'milan' })).rejects.toMatchObject({
      code: 'cluster_id_taken',
    });
  });
});

/** Joins clusters whose names others have: the world finds simulated clusters by name, so the first of a name stays the one it plays. */
const createTwin =
  (fixture: Awaited<ReturnType<typeof twoTenants>>) =>
  async (name: string, tenant: string): Promise<void> => {
    const clusters = fixture.clusters as Map<string, never>;
    const played = clusters.get(name);
    await fixture.join(name, { tenant, facts: worldlyFacts });
    if (played) clusters.set(name, played);
    expect((await fixture.control.clusters.get(adminOf(tenant), name)).state).toBe('joined');
  };
