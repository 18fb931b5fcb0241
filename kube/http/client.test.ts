import * as http from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { configMaps } from '#shared/domain/core-kinds.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { connectTo } from '#test/harness/plain-server.ts';
import type { KubeApi } from '../model/types.ts';
import { createKubeApi } from './client.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'demo', name: 'settings' } };
const ref = { namespace: 'demo', name: 'settings' };

test.each<{ readonly verb: string; readonly write: (api: KubeApi) => Promise<unknown> }>([
  { verb: 'create', write: (api) => api.create(configMaps, object, { answer: 'metadata' }) },
  { verb: 'update', write: (api) => api.update(configMaps, object, { answer: 'metadata' }) },
  { verb: 'apply', write: (api) => api.apply(configMaps, object, { fieldManager: 'test', answer: 'metadata' }) },
  { verb: 'merge patch', write: (api) => api.mergePatch(configMaps, ref, {}, { answer: 'metadata' }) },
  { verb: 'JSON patch', write: (api) => api.jsonPatch(configMaps, ref, [], { answer: 'metadata' }) },
])('a $verb whose caller reads only the metadata of the answer gets no more', async ({ write }) => {
  const accepted: (string | undefined)[] = [];
  const server = http.createServer((request, response) => {
    accepted.push(request.headers.accept);
    response.end('{}');
  });
  const { connection, close } = await connectTo(server);
  closers.push(close);
  await write(createKubeApi(connection, { clock: systemClock, log: silentLog }));
  expect(accepted).toEqual([expect.stringContaining('as=PartialObjectMetadata')]);
});

test.each([
  { options: undefined, asks: ['0+50', '50+50', '100+50', '0+50', '50+50', '100+50'] },
  { options: { pageSize: 40 }, asks: ['0+40', '40+40', '80+40', '0+40', '40+40', '80+40'] },
])(
  'what is collected with $options comes from small pages, each once, also where the snapshot of the first ones is gone',
  async ({ options, asks }) => {
    const names = Array.from({ length: 120 }, (_, at) => `m${at}`);
    const asked: string[] = [];
    const server = http.createServer((request, response) => {
      const query = new URL(request.url ?? '/', 'http://x').searchParams;
      const [limit, from] = [Number(query.get('limit')), Number(query.get('continue') ?? 0)];
      asked.push(`${from}+${limit}`);
      if (asked.length === 3)
        return void response.writeHead(410).end(JSON.stringify({ kind: 'Status', code: 410, reason: 'Expired' }));
      const to = Math.min(names.length, from + limit);
      const items = names.slice(from, to).map((name) => ({ metadata: { name }, data: { text: 'x' } }));
      const metadata = { resourceVersion: '1', ...(to < names.length && { continue: `${to}` }) };
      response.end(JSON.stringify({ metadata, items }));
    });
    const { connection, close } = await connectTo(server);
    closers.push(close);
    const api = createKubeApi(connection, { clock: systemClock, log: silentLog });
    const kept = await api.collect(
      configMaps,
      ({ kind, metadata }) => (metadata.name.endsWith('7') ? `${kind} ${metadata.name}` : undefined),
      options,
    );
    expect(kept).toEqual(names.filter((name) => name.endsWith('7')).map((name) => `ConfigMap ${name}`));
    expect(asked).toEqual(asks);
  },
);
