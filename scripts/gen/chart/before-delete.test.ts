/** The hook before `helm uninstall`, as its pod runs it, at an API server that is played. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { run } from '#test/harness/program.ts';
import { CertificateAuthority } from '#test/testbed/pki.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const chart = path.join(repositoryRoot, 'charts', 'isthmus');
const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-hook-'));
const definition = (group: string, plural: string, kind: string) => ({
  spec: { group, versions: [{ name: 'v1' }], names: { plural, kind } },
});
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const own = '/api/v1/namespaces?fieldSelector=metadata.name=liqo';
const tenants = '/api/v1/namespaces?labelSelector=liqo.io/tenant-namespace';

/** Listed objects by path; any other path is not found. */
let lists: Readonly<Record<string, readonly object[]>>;
/** Paths whose first request is answered with 429. */
const busy = new Set<string>();
/** Paths whose second page comes too late, once. */
const expired = new Set<string>();
/** What was answered. */
const pages: { readonly items: number; readonly accept: string }[] = [];
let server: Server;
beforeAll(async () => {
  const authority = await CertificateAuthority.create('hook');
  server = createServer(
    await authority.issue({ commonName: 'api-server', ips: ['127.0.0.1'] }),
    ({ url = '', headers }, response) => {
      const { pathname, searchParams } = new URL(url, 'https://api');
      const limit = Number(searchParams.get('limit') ?? Number.POSITIVE_INFINITY);
      searchParams.delete('limit');
      const from = Number(searchParams.get('continue') ?? 0);
      searchParams.delete('continue');
      const key = decodeURIComponent(searchParams.size === 0 ? pathname : `${pathname}?${searchParams}`);
      const isLate = from > 0 && expired.delete(key);
      const page = lists[key]?.slice(from, from + limit);
      if (page !== undefined) pages.push({ items: page.length, accept: headers.accept ?? '' });
      const next = from + limit < (lists[key]?.length ?? 0) ? { continue: String(from + limit) } : {};
      const status = busy.delete(key) ? 429 : isLate ? 410 : page === undefined ? 404 : 200;
      // As API servers write an empty list of metadata.
      const items = page?.length === 0 ? null : page;
      response.writeHead(status).end(JSON.stringify({ items, metadata: next }));
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  writeFileSync(path.join(scratch, 'ca.crt'), authority.cert);
  writeFileSync(path.join(scratch, 'token'), 'token');
});
afterAll(() => {
  server?.closeAllConnections();
  server?.close();
  rmSync(scratch, { recursive: true, force: true });
});

/** What the hook says; undefined when it lets Helm go on. */
async function refusal(of: typeof lists): Promise<string | undefined> {
  lists = of;
  const { code, stderr } = await run(process.execPath, [path.join(chart, 'files', 'before-delete.mjs')], {
    env: {
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: String((server.address() as AddressInfo).port),
      NODE_EXTRA_CA_CERTS: path.join(scratch, 'ca.crt'),
      TOKEN_FILE: path.join(scratch, 'token'),
    },
  });
  return code === 0 ? undefined : stderr;
}
const tenant = { metadata: { name: 'liqo-tenant-milan' } };

test('tenant namespaces hold Isthmus while its own namespace is there', async () => {
  const there = { [definitions]: [], [own]: [{ metadata: { name: 'liqo' } }], [tenants]: [tenant] };
  expect(await refusal(there)).toContain('still in this cluster: Namespace liqo-tenant-milan. Run `isthmus uninstall');
});

test('tenant namespaces that `isthmus uninstall` has kept hold nothing', async () => {
  expect(await refusal({ [definitions]: [], [own]: [], [tenants]: [tenant] })).toBeUndefined();
});

test('objects with finalizers hold Isthmus where they are of its kinds, and no others do', async () => {
  const kinds = [definition('ipam.liqo.io', 'networks', 'Network'), definition('sharing.liqo.io', 'ads', 'Ad')];
  const held = { metadata: { name: 'held', finalizers: ['x'] } };
  const left = { [definitions]: kinds, [own]: [], '/apis/sharing.liqo.io/v1/ads': [held] };
  expect(await refusal(left)).toBeUndefined();
  expect(await refusal({ ...left, '/apis/ipam.liqo.io/v1/networks': [held] })).toContain('cluster: 1 Network. Run');
});

test('objects are counted by pages without their contents, also where a page came too late', async () => {
  const path = '/apis/ipam.liqo.io/v1/networks';
  const many = Array.from({ length: 1_100 }, (_, at) => ({
    metadata: { name: `n${at}`, finalizers: at % 2 === 0 ? ['x'] : [] },
  }));
  expired.add(path);
  pages.length = 0;
  const kinds = [definition('ipam.liqo.io', 'networks', 'Network')];
  expect(await refusal({ [definitions]: kinds, [own]: [], [path]: many })).toContain('cluster: 550 Network. Run');
  expect(Math.max(...pages.map(({ items }) => items))).toBe(200);
  expect(pages.some(({ accept }) => accept.includes('as=PartialObjectMetadataList'))).toBe(true);
  expect(expired.size).toBe(0);
});

test('an API server that is busy for a moment is asked again', async () => {
  busy.add(definitions).add(own);
  expect(await refusal({ [definitions]: [], [own]: [] })).toBeUndefined();
  expect(busy.size).toBe(0);
});

test('it asks for objects of every group of ours, and may', () => {
  const [, ours = ''] =
    /const ours = \/(.+)\/;/.exec(readFileSync(path.join(chart, 'files', 'before-delete.mjs'), 'utf8')) ?? [];
  const template = readFileSync(path.join(chart, 'templates', 'hooks.yaml'), 'utf8');
  for (const { group } of allKinds) {
    expect(group).toMatch(new RegExp(ours));
    expect(template).toContain(`"${group}"`);
  }
});
