/** What each tenant sees of the other, field by field, against the tables of docs/cross-tenant.md. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { DirectoryEntry, PeeringRequest, Redemption } from '#shared/schema/api/cross-tenant.ts';
import { Peering } from '#shared/schema/api/resources.ts';
import { publicFields } from './directory/entry.ts';
import type { PeeringCondition } from './model/peering.ts';
import type { PeeringRecord } from './model/peering-records.ts';
import { copyFor } from './peerings/cross-tenant/copies.ts';
import { peeringView } from './peerings/use-cases/peerings.ts';
import { acme, bolt, twoTenants } from './testing/two-tenants.ts';

const page = readFileSync(path.resolve(import.meta.dirname, '../docs/cross-tenant.md'), 'utf8');

/** Column by column of the first table under a heading: which fields are seen. */
function documented(heading: string): {
  readonly all: string[];
  readonly consumer: string[];
  readonly provider: string[];
} {
  const section = page.split(`### ${heading}\n`)[1]?.split('\n#')[0] ?? '';
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (field|---)/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const seen = (column: number) =>
    rows
      .filter((row) => row[column] !== 'no')
      .map((row) => row[1] ?? '')
      .sort();
  return { all: seen(1), consumer: seen(2), provider: seen(3) };
}

const keysOf = (value: object): string[] => Object.keys(value).sort();

/** In every text of the one side, and in none that the other may see. */
const inner = { consumer: 'INNER-OF-ROME', provider: 'INNER-OF-MILAN' } as const;

const condition = (
  type: PeeringCondition['type'],
  side: PeeringCondition['side'],
  reason: string,
  author: 'consumer' | 'provider' | undefined = side === 'both' ? undefined : side,
): PeeringCondition => ({
  type,
  side,
  status: 'False',
  reason,
  message: author ? inner[author] : 'fixed words',
  action: author ? inner[author] : '',
  since: 5,
});

/** Everything that the state machine can know, at once. */
const full: PeeringRecord = {
  spec: {
    id: 'pe_1',
    consumer: 'rome',
    provider: 'milan',
    resources: { cpu: '2' },
    class: 'default',
    network: { enabled: true, gatewayLocation: 'provider', mtu: 1340, inBand: true },
    nonce: 'NONCE',
    createdAt: 1,
    requestedBy: inner.consumer,
    labels: { LABEL: 'LABEL' },
    ask: { name: inner.consumer, uid: inner.consumer, generation: 1 },
    unpeerRequestedAt: 9,
    unpeerRequestedBy: 'provider',
    across: {
      consumer: 'acme',
      provider: 'bolt',
      grant: { by: 'invitation', id: 'iv_1', limits: { cpu: '4' }, classes: ['default'], lapsesAt: 7 },
    },
  },
  state: {
    phase: 'Unpeering',
    phaseSince: { Ready: 2 },
    consentedAt: 2,
    signed: { signedNonce: 'SIGNED', csr: 'CSR', publicKey: 'KEY' },
    issued: { authParams: { ca: 'CA', signedCRT: 'CRT', apiServer: 'URL' }, tenantNamespace: 'NAMESPACE' },
    link: {
      layout: { server: 'milan', mtu: 1340, serviceType: 'NodePort', by: 'pe_1', at: 1 },
      asked: { gatewayLocation: 'provider', mtu: 1340 },
      consumer: {
        ranges: { pod: ['RANGE'], external: ['RANGE'] },
        key: 'KEY',
        candidates: ['198.51.100.1:51840', `${inner.consumer}:51840`],
        connection: { value: 'Connecting', latency: inner.consumer, peerEndpoint: inner.consumer, reportedAt: 3 },
      },
      provider: {
        ranges: { pod: ['RANGE'], external: ['RANGE'] },
        key: 'KEY',
        candidates: [`${inner.provider}:51840`, '198.51.100.2:30000'],
        connection: { value: 'Connected', latency: inner.provider, peerEndpoint: inner.provider, reportedAt: 3 },
      },
    },
    proxyUrl: 'URL',
    granted: { cpu: '2', [`${inner.consumer} !`]: '1', memory: inner.consumer },
    leftBehind: [`rome: ${inner.consumer}`, `milan: ${inner.provider}`],
    warnings: [
      { side: 'consumer', message: inner.consumer },
      { side: 'provider', message: inner.provider },
    ],
    removal: { startedAt: 9 },
    conditions: [
      condition('Consented', 'provider', 'PolicyRefuses'),
      condition('Consented', 'consumer', 'WaitingForConsent'),
      condition('ConsumerOnline', 'consumer', 'NotHeard'),
      condition('ProviderOnline', 'provider', 'NotHeard'),
      condition('Authenticated', 'provider', 'Denied', 'consumer'),
      condition('Authenticated', 'both', 'Yes'),
      condition('ResourcesGranted', 'provider', 'Denied', 'consumer'),
      condition('ResourcesGranted', 'provider', 'NoNodeReady', 'consumer'),
      condition('NetworkReady', 'consumer', 'LinkDown'),
      condition('NetworkReady', 'provider', inner.provider),
      condition('NodeReady', 'consumer', inner.consumer),
      condition('ProviderClean', 'provider', inner.provider),
      condition('ConsumerClean', 'consumer', 'Refused'),
    ],
  },
};

describe('a peering', () => {
  const table = documented('What is shown of a peering?');

  test.each(['consumer', 'provider'] as const)('as its %s’s tenant sees it has the documented fields', (side) => {
    const copy = copyFor(full, side);
    const view = peeringView(copy, 1, side === 'consumer' ? 'acme' : 'bolt');
    expect(keysOf(view)).toEqual(table[side]);
    expect(keysOf(view.across ?? {})).toEqual(
      ['by', 'classes', 'endedBy', 'lapsesAt', 'limits', 'peerTenant', 'side'].sort(),
    );
    for (const seen of view.conditions)
      expect(keysOf(seen)).toEqual(['action', 'message', 'reason', 'side', 'since', 'status', 'type']);
  });

  test.each(['consumer', 'provider'] as const)('holds nothing in the words of the other side for its %s', (side) => {
    const other = side === 'consumer' ? 'provider' : 'consumer';
    const copy = copyFor(full, side);
    const text = JSON.stringify([copy, peeringView(copy, 1, side === 'consumer' ? 'acme' : 'bolt')]);
    expect(text).not.toContain(inner[other]);
    for (const secret of ['NONCE', 'SIGNED', 'CSR', 'KEY', 'CRT', 'CA"', 'URL', 'NAMESPACE', 'RANGE', 'LABEL'])
      expect(text).not.toContain(secret);
    // Its own words stay its own to read.
    expect(text).toContain(inner[side]);
  });

  test('is copied the same way twice', () => {
    for (const side of ['consumer', 'provider'] as const)
      expect(copyFor(copyFor(full, side), side)).toEqual(copyFor(full, side));
  });

  test('has no field in the API that the table does not name', () => {
    expect(Object.keys(Peering.shape).sort()).toEqual(table.all);
  });
});

test('requests, uses of invitations and directory entries have the documented fields', async () => {
  const { control, invited, published, until } = await twoTenants();
  await published();
  const wanted = { consumer: 'rome', providerTenant: 'bolt', provider: 'milan' };
  const { request } = await control.requests.ask(acme, wanted);
  const { peering } = await control.requests.approve(bolt, request.id, 'yes');
  const table = documented('What is shown of a request?');
  expect(keysOf(await control.requests.get(acme, request.id))).toEqual(table.consumer);
  expect(keysOf(await control.requests.get(bolt, request.id))).toEqual(table.provider);
  expect(Object.keys(PeeringRequest.shape).sort()).toEqual(table.all);
  await control.peerings.unpeer(acme, peering ?? '');
  await until(async () => (await control.peerings.get(acme, peering ?? '')).phase === 'Gone');
  await invited();
  const [invitation] = (await control.invitations.list(bolt)).items;
  const uses = documented('What is shown of an invitation?');
  expect(keysOf(invitation?.redemptions[0] ?? {})).toEqual(uses.provider);
  expect(uses.consumer).toEqual([]);
  expect(Object.keys(Redemption.shape).sort()).toEqual(uses.provider);
  expect(documented('What is shown of a directory entry?').all).toEqual([...publicFields].sort());
  expect(Object.keys(DirectoryEntry.shape).sort()).toEqual([...publicFields].sort());
});

test('audit records of the other tenant’s acts name the tenant, but neither its principal nor an address', async () => {
  const { control, invited, untilPhase } = await twoTenants();
  const { id } = await invited();
  await untilPhase(id, 'Ready');
  await control.peerings.unpeer({ ...bolt, principal: 'api-key/ak_inner', from: '198.51.100.9' }, id);
  const [record] = (await control.audit.list(acme, { subject: `peering/${id}` })).items.filter(
    ({ action }) => action === 'peering.unpeer',
  );
  expect(record).toMatchObject({ principal: 'tenant/bolt', from: 'broker' });
  const everything = JSON.stringify([await control.audit.list(acme, { limit: 200 }), await control.events.list(acme)]);
  expect(everything).not.toContain('ak_inner');
  expect(everything).not.toContain('198.51.100.9');
});
