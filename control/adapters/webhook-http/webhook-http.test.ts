import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createWebhookHttp } from './webhook-http.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** A resolver that knows each name's next answer. */
function resolver(answers: Record<string, readonly (readonly string[])[]>): {
  lookup: LookupFunction;
  asked: string[];
} {
  const asked: string[] = [];
  const lookup = ((name: string, options: { all?: boolean }, callback: (...args: unknown[]) => void) => {
    const turn = asked.filter((one) => one === name).length;
    asked.push(name);
    const addresses = answers[name]?.[turn] ?? answers[name]?.at(-1) ?? [];
    const all = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    if (options.all) callback(null, all);
    else callback(null, all[0]?.address, all[0]?.family);
  }) as unknown as LookupFunction;
  return { lookup, asked };
}

const post = { headers: { 'webhook-id': 'ev_1' }, body: '{"a":1}' };
const open = (over = {}) => createWebhookHttp({ allowPrivateAddresses: true, ...over });

describe('what is posted', () => {
  test('arrives as it is, with its headers', async () => {
    let seen: { headers: IncomingHttpHeaders; body: string; method?: string | undefined } | undefined;
    const port = await serve((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        seen = { headers: request.headers, body, method: request.method };
        response.writeHead(204).end();
      });
    });
    expect(await open().post({ url: `http://127.0.0.1:${port}/hook?a=b`, ...post })).toEqual({ status: 204, text: '' });
    expect(seen).toMatchObject({ method: 'POST', body: '{"a":1}', headers: { 'webhook-id': 'ev_1' } });
  });

  test('follows no redirect', async () => {
    let hits = 0;
    const port = await serve((_request, response) => {
      hits += 1;
      response.writeHead(302, { location: `http://127.0.0.1:${port}/elsewhere` }).end('moved');
    });
    expect(await open().post({ url: `http://127.0.0.1:${port}/`, ...post })).toEqual({ status: 302, text: 'moved' });
    expect(hits).toBe(1);
  });

  test('of an endless answer only the beginning is read, and nothing that spoils a terminal', async () => {
    const port = await serve((_request, response) => {
      response.writeHead(500);
      const more = () => response.write('\u001b[31mx'.repeat(400));
      response.on('drain', more);
      while (more());
    });
    const outcome = await open().post({ url: `http://127.0.0.1:${port}/`, ...post });
    if (!('status' in outcome)) throw new Error(outcome.error);
    expect(outcome.text).toHaveLength(1_024);
    expect(outcome.text).not.toContain('\u001b');
  });

  test('waits no longer than it may for an answer, nor for its end', async () => {
    const silent = await serve(() => undefined);
    const slow = await serve((_request, response) => void response.writeHead(200).write('a'));
    for (const port of [silent, slow]) {
      const outcome = await open({ timeoutMs: 60 }).post({ url: `http://127.0.0.1:${port}/`, ...post });
      expect(outcome).toEqual({ error: 'no answer within 0.06 s' });
    }
  });

  test('says how long the receiver asked to be left alone', async () => {
    const port = await serve((_request, response) => response.writeHead(429, { 'retry-after': '120' }).end());
    const outcome = await open().post({ url: `http://127.0.0.1:${port}/`, ...post });
    expect(outcome).toEqual({ status: 429, text: '', retryAfterMs: 120_000 });
  });

  test('rejects when the caller gives up, and says so when the connection is refused', async () => {
    const port = await serve(() => undefined);
    const stop = new AbortController();
    const posting = open().post({ url: `http://127.0.0.1:${port}/`, ...post }, stop.signal);
    stop.abort(new Error('stopping'));
    await expect(posting).rejects.toThrow('stopping');
    for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
    const outcome = await open().post({ url: `http://127.0.0.1:${port}/`, ...post });
    expect(outcome).toEqual({ error: expect.stringContaining('ECONNREFUSED') });
  });
});

describe('where nothing is posted', () => {
  const closed = createWebhookHttp();

  test.each([
    { url: 'http://example.com/', why: 'https only' },
    { url: 'ftp://example.com/', why: 'https only' },
    { url: 'file:///etc/passwd', why: 'https only' },
    { url: 'nonsense', why: 'no URL' },
    { url: 'https://user:pw@example.com/', why: 'no user' },
    { url: 'https://example.com/#part', why: 'fragment' },
    { url: 'https://127.0.0.1/', why: 'public addresses' },
    { url: 'https://2130706433/', why: 'public addresses' },
    { url: 'https://0x7f.1/', why: 'public addresses' },
    { url: 'https://[::1]/', why: 'public addresses' },
    { url: 'https://[::ffff:127.0.0.1]/', why: 'public addresses' },
    { url: 'https://[::ffff:a9fe:a9fe]/', why: 'public addresses' },
    { url: 'https://[fe80::1]/', why: 'public addresses' },
    { url: 'https://[fd00::1]/', why: 'public addresses' },
    { url: 'https://169.254.169.254/latest/meta-data', why: 'public addresses' },
    { url: 'https://10.0.0.1/', why: 'public addresses' },
    { url: 'https://172.16.0.1/', why: 'public addresses' },
    { url: 'https://192.168.1.1/', why: 'public addresses' },
    { url: 'https://100.64.0.1/', why: 'public addresses' },
    { url: 'https://0.0.0.0/', why: 'public addresses' },
    { url: 'https://localhost/', why: 'public addresses' },
    { url: 'https://a.localhost/', why: 'public addresses' },
    { url: `https://example.com/${'x'.repeat(2_000)}`, why: 'longer than' },
  ])('$url', async ({ url, why }) => {
    expect(closed.refusal(url)).toContain(why);
    expect(await closed.post({ url, ...post })).toEqual({ error: expect.stringContaining(why) });
  });

  test('the operator may allow private addresses, and plain HTTP on loopback only', () => {
    for (const url of ['https://10.0.0.1/', 'http://127.0.0.1:8080/', 'http://localhost/'])
      expect(open().refusal(url)).toBeUndefined();
    expect(open().refusal('http://10.0.0.1/')).toContain('https only');
    expect(open().refusal('http://example.com/')).toContain('https only');
  });

  test.each([
    { what: 'a private address', addresses: ['10.1.2.3'] },
    { what: 'loopback', addresses: ['127.0.0.1'] },
    { what: 'link-local', addresses: ['169.254.169.254'] },
    { what: 'a public and a private address', addresses: ['93.184.216.34', '10.0.0.1'] },
    { what: 'mapped loopback', addresses: ['::ffff:127.0.0.1'] },
    { what: 'nothing', addresses: [] },
  ])('a name that resolves to $what', async ({ addresses }) => {
    const { lookup } = resolver({ 'hook.example': [addresses] });
    const outcome = await createWebhookHttp({ lookup }).post({ url: 'https://hook.example/', ...post });
    expect(outcome).toEqual({ error: expect.stringContaining('not public') });
  });

  test('a name whose address changes after it was checked gains nothing: it is resolved once per connection', async () => {
    let hits = 0;
    const port = await serve((_request, response) => {
      hits += 1;
      response.end();
    });
    // Public when the webhook is made, loopback when the event comes.
    const { lookup, asked } = resolver({ 'hook.example': [['127.0.0.1']] });
    const sender = createWebhookHttp({ lookup });
    const url = `https://hook.example:${port}/`;
    expect(sender.refusal(url)).toBeUndefined();
    expect(await sender.post({ url, ...post })).toEqual({ error: expect.stringContaining('not public') });
    expect(asked).toEqual(['hook.example']);
    expect(hits).toBe(0);
  });

  test('the connection goes to the address that was checked, without asking again', async () => {
    const port = await serve((request, response) => void response.end(request.headers.host));
    const { lookup, asked } = resolver({ localhost: [['127.0.0.1'], ['192.0.2.1']] });
    const outcome = await open({ lookup }).post({ url: `http://localhost:${port}/`, ...post });
    expect(outcome).toEqual({ status: 200, text: `localhost:${port}` });
    expect(asked).toEqual(['localhost']);
  });
});
