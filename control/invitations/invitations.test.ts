/** Invitations: rights to create, read, use and revoke them, for how long and how often. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { Crash, createFaultyStore } from '../testing/faulty-store.ts';
import { acme, bolt, corp, twoTenants, worldlyFacts } from '../testing/two-tenants.ts';
import { codeText, type NewInvitation, parseCode } from './invitation.ts';

const day = 86_400_000;

describe('making one', () => {
  test.each([
    { input: { cluster: 'atlantis' }, code: 'cluster_unknown', field: undefined },
    { input: { cluster: 'rome' }, code: 'cluster_unknown', field: undefined },
    { input: { cluster: 'Milan' }, code: 'invalid_input', field: 'cluster' },
    { input: { cluster: 'milan', uses: 0 }, code: 'invalid_input', field: 'uses' },
    { input: { cluster: 'milan', uses: 101 }, code: 'invalid_input', field: 'uses' },
    { input: { cluster: 'milan', expiresInSeconds: 59 }, code: 'invalid_input', field: 'expiresInSeconds' },
    { input: { cluster: 'milan', limits: { cpu: 'much' } }, code: 'invalid_input', field: 'limits.cpu' },
    { input: { cluster: 'milan', limits: { cpu: '-1' } }, code: 'invalid_input', field: 'limits.cpu' },
    { input: { cluster: 'milan', classes: [] }, code: 'invalid_input', field: 'classes' },
    { input: { cluster: 'milan', classes: ['a b'] }, code: 'invalid_input', field: 'classes' },
    { input: { cluster: 'milan', note: 'x'.repeat(501) }, code: 'invalid_input', field: 'note' },
  ] satisfies { input: NewInvitation; code: string; field: string | undefined }[])(
    'of $input is $code',
    async ({ input, code, field }) => {
      const { control } = await twoTenants();
      const refused = control.invitations.create(bolt, input);
      await expect(refused).rejects.toMatchObject({ code, ...(field ? { detail: { field } } : {}) });
      expect((await control.invitations.list(bolt)).items).toEqual([]);
    },
  );

  test.each(['viewer'] as const)('is not for a %s', async (role) => {
    const { control } = await twoTenants();
    const caller = { ...bolt, role };
    await expect(control.invitations.create(caller, { cluster: 'milan' })).rejects.toMatchObject({ code: 'forbidden' });
    await expect(control.invitations.list(caller)).rejects.toMatchObject({ code: 'forbidden' });
  });

  test('shows the code once: neither code nor hash is in views, items, audit or events', async () => {
    const { control, store, invited } = await twoTenants();
    const { code, invitation } = await control.invitations.create(bolt, { cluster: 'milan', note: 'spring' });
    const secret = code.slice(-43);
    const seen = JSON.stringify([
      invitation,
      await control.invitations.get(bolt, invitation.id),
      await control.invitations.list(bolt),
      await control.audit.list(bolt),
      await control.events.list(bolt),
    ]);
    expect(seen).not.toContain(secret);
    expect(seen).not.toContain('hash');
    const stored = await store.query({ partition: 't/bolt/invitations', limit: 10 });
    expect(JSON.stringify(stored)).not.toContain(secret);
    await invited();
  });

  test('a code leads back to tenant and identifier, and nothing else is a code', () => {
    const tenant = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/);
    const id = fc.stringMatching(/^[0-9a-z]{1,26}$/);
    const secret = fc.stringMatching(/^[-_A-Za-z0-9]{43}$/);
    fc.assert(
      fc.property(tenant, id, secret, (name, of, rest) => {
        expect(parseCode(codeText(name, `iv_${of}`, rest))).toEqual({ tenant: name, id: `iv_${of}` });
      }),
    );
    fc.assert(fc.property(fc.string(), (text) => void expect(parseCode(`${text} `)).toBeUndefined()));
  });
});

describe('using one', () => {
  test.each([
    { what: 'cut off', change: (code: string) => code.slice(0, -1) },
    { what: 'with another secret', change: (code: string) => `${code.slice(0, -43)}${'A'.repeat(43)}` },
    { what: 'of another tenant', change: (code: string) => code.replace('_bolt_', '_corp_') },
    { what: 'of a tenant that is not', change: (code: string) => code.replace('_bolt_', '_nobody_') },
    { what: 'that is something else', change: () => 'hello' },
  ])('a code $what: the same words for each', async ({ change }) => {
    const { control } = await twoTenants();
    const { code } = await control.invitations.create(bolt, { cluster: 'milan' });
    await expect(control.invitations.redeem(acme, { code: change(code), consumer: 'rome' })).rejects.toMatchObject({
      code: 'invitation_unknown',
      message: 'no invitation has this code',
    });
  });

  test('asks for no more than its limits, in one of its classes, and for all of them when nothing is named', async () => {
    const { control } = await twoTenants();
    const limits = { cpu: '4', memory: '8Gi' };
    const { code } = await control.invitations.create(bolt, { cluster: 'milan', limits, classes: ['default', 'gpu'] });
    const redeem = (resources?: Record<string, string>, name?: string) =>
      control.invitations.redeem(acme, {
        code,
        consumer: 'rome',
        ...(resources ? { resources } : {}),
        ...(name ? { class: name } : {}),
      });
    await expect(redeem({ cpu: '5' })).rejects.toMatchObject({
      code: 'consent_exceeded',
      detail: { field: 'resources.cpu', accepted: 'at most 4' },
    });
    await expect(redeem({}, 'huge')).rejects.toMatchObject({ code: 'consent_exceeded', detail: { field: 'class' } });
    // The cluster itself allows class default only, regardless of what its tenant wrote into the invitation.
    await expect(redeem({}, 'gpu')).rejects.toMatchObject({
      code: 'policy_refused',
      message: expect.not.stringContaining('PeeringPolicy'),
    });
    const { peering } = await redeem({ cpu: '1' });
    expect(peering.resources).toEqual({ cpu: '1', memory: '8Gi' });
  });

  test('again for the same cluster is the same peering and costs nothing', async () => {
    const { control } = await twoTenants();
    const { code, invitation } = await control.invitations.create(bolt, { cluster: 'milan' });
    const first = await control.invitations.redeem(acme, { code, consumer: 'rome' });
    const second = await control.invitations.redeem(acme, { code, consumer: 'rome' });
    expect([first.created, second.created]).toEqual([true, false]);
    expect(second.peering.id).toBe(first.peering.id);
    expect(await control.invitations.get(bolt, invitation.id)).toMatchObject({ usesLeft: 0, state: 'used' });
  });

  test('more often than allowed is refused, and says so', async () => {
    const clusters = await twoTenants();
    const { control } = clusters;
    await clusters.join('turin', { tenant: 'acme', facts: worldlyFacts });
    await clusters.join('oslo', { tenant: 'corp', facts: worldlyFacts });
    const { code } = await control.invitations.create(bolt, { cluster: 'milan', uses: 2 });
    await control.invitations.redeem(acme, { code, consumer: 'rome' });
    await control.invitations.redeem(corp, { code, consumer: 'oslo' });
    await expect(control.invitations.redeem(acme, { code, consumer: 'turin' })).rejects.toMatchObject({
      code: 'invitation_closed',
      message: expect.stringContaining('2 times'),
    });
  });

  test('by many at once makes as many peerings as it may, and no more', async () => {
    const clusters = await twoTenants();
    const { control } = clusters;
    const names = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6'];
    for (const name of names) await clusters.join(name, { tenant: 'acme', facts: worldlyFacts });
    const { code, invitation } = await control.invitations.create(bolt, { cluster: 'milan', uses: 3 });
    const all = await Promise.allSettled(names.map((consumer) => control.invitations.redeem(acme, { code, consumer })));
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    for (const one of all) if (one.status === 'rejected') expect(codeOf(one.reason)).toBe('invitation_closed');
    const { redemptions } = await control.invitations.get(bolt, invitation.id);
    expect(new Set(redemptions.map(({ peering }) => peering)).size).toBe(3);
    expect((await control.peerings.list(bolt)).items).toHaveLength(3);
  });

  test('after its time is refused', async () => {
    const { control, clock } = await twoTenants();
    const { code } = await control.invitations.create(bolt, { cluster: 'milan', expiresInSeconds: 3_600 });
    clock.advance(3_600_000);
    await expect(control.invitations.redeem(acme, { code, consumer: 'rome' })).rejects.toMatchObject({
      code: 'invitation_closed',
      message: expect.stringContaining('expired at'),
    });
    clock.advance(31 * day);
    expect((await control.invitations.list(bolt)).items).toEqual([]);
  });

  test('by its own tenant, by a viewer, or for a cluster that is not there, is refused', async () => {
    const { control } = await twoTenants();
    const { code, invitation } = await control.invitations.create(bolt, { cluster: 'milan' });
    const redeem = (caller: typeof acme, consumer: string) => control.invitations.redeem(caller, { code, consumer });
    await expect(redeem(bolt, 'milan')).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(redeem({ ...acme, role: 'viewer' }, 'rome')).rejects.toMatchObject({ code: 'forbidden' });
    await expect(redeem(acme, 'atlantis')).rejects.toMatchObject({ code: 'cluster_unknown' });
    expect((await control.invitations.get(bolt, invitation.id)).usesLeft).toBe(1);
  });
});

describe('taking one back', () => {
  test('stops further uses; what both clusters agreed to stays', async () => {
    const { control, untilPhase, view } = await twoTenants();
    const { code, invitation } = await control.invitations.create(bolt, { cluster: 'milan', uses: 5 });
    const { peering } = await control.invitations.redeem(acme, { code, consumer: 'rome' });
    await untilPhase(peering.id, 'Ready');
    const revoked = await control.invitations.revoke(bolt, invitation.id);
    expect(revoked.state).toBe('revoked');
    expect((await control.invitations.revoke(bolt, invitation.id)).version).toBe(revoked.version);
    expect((await view(acme, peering.id)).phase).toBe('Ready');
    await expect(control.invitations.redeem(acme, { code, consumer: 'rome' })).resolves.toMatchObject({
      created: false,
    });
    await control.peerings.unpeer(acme, peering.id);
    await untilPhase(peering.id, 'Gone');
    await expect(control.invitations.redeem(acme, { code, consumer: 'rome' })).rejects.toMatchObject({
      code: 'invitation_closed',
    });
  });

  test('midway, before both clusters agreed, ends the peering at both tenants', async () => {
    const clusters = await twoTenants();
    const { control, view } = clusters;
    clusters.rome.facts = {
      ...worldlyFacts,
      policies: worldlyFacts.policies.map((p) => ({ ...p, asConsumer: { ...p.asConsumer, autoAccept: false } })),
    };
    await clusters.step();
    const { code, invitation } = await control.invitations.create(bolt, { cluster: 'milan' });
    const { peering } = await control.invitations.redeem(acme, { code, consumer: 'rome' });
    expect(peering.phase).toBe('Proposed');
    await control.invitations.revoke(bolt, invitation.id);
    for (const caller of [acme, bolt]) {
      const over = await view(caller, peering.id);
      expect(over.phase).toBe('Gone');
      expect(over.conditions[0]).toMatchObject({ type: 'Consented', reason: 'Withdrawn' });
    }
    clusters.rome.facts = worldlyFacts;
    await clusters.step();
    expect((await view(acme, peering.id)).phase).toBe('Gone');
  });

  test('is for its own tenant only; for others it is not there', async () => {
    const { control } = await twoTenants();
    const { invitation } = await control.invitations.create(bolt, { cluster: 'milan' });
    const missing = { code: 'not_found' };
    await expect(control.invitations.get(acme, invitation.id)).rejects.toMatchObject(missing);
    await expect(control.invitations.revoke(acme, invitation.id)).rejects.toMatchObject(missing);
    expect((await control.invitations.list(acme)).items).toEqual([]);
  });
});

test('dying at any write of a redemption or a revocation leaves all of it or nothing', async () => {
  for (const when of ['before', 'after'] as const) {
    for (let at = 1; at <= 4; at += 1) {
      for (const dying of ['redeem', 'revoke'] as const) {
        const faulty = createFaultyStore();
        const clusters = await twoTenants({ wrap: faulty.wrap });
        const { control } = clusters;
        const { code, invitation } = await control.invitations.create(bolt, { cluster: 'milan' });
        const redeem = () => control.invitations.redeem(acme, { code, consumer: 'rome' });
        const revoke = () => control.invitations.revoke(bolt, invitation.id);
        if (dying === 'revoke') await redeem();
        Object.assign(faulty.fault, { in: at, when });
        await (dying === 'redeem' ? redeem() : revoke()).catch((error: unknown) => {
          if (!(error instanceof Crash)) throw error;
        });
        faulty.fault.in = 0;
        const { redemptions } = await control.invitations.get(bolt, invitation.id);
        const [ofAcme, ofBolt] = [await control.peerings.list(acme), await control.peerings.list(bolt)];
        const ids = redemptions.map(({ peering }) => peering);
        expect(ofAcme.items.map(({ id }) => id)).toEqual(ids);
        expect(ofBolt.items.map(({ id }) => id)).toEqual(ids);
        // Each client repeats its unanswered requests, and the sweep does the rest.
        const { peering } = dying === 'redeem' ? await redeem() : { peering: ofAcme.items[0] };
        await clusters.untilPhase(peering?.id ?? '', 'Ready');
      }
    }
  }
});
