/** What an operator without a cloud needs: a certificate of one's own, proxies in front, copies of the data. */
import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '#shared/ports/log.ts';
import { backUp, restore } from './backup.ts';
import { type Broker, startBroker } from './broker.ts';
import { servingCertificates } from './certificates.ts';
import { readCertificate } from './own-certificate.ts';
import { trustProxies } from './proxies.ts';
import { send } from './scripted-agent.ts';

let dir = '';
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-operate-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const start = (dataDir: string, over: Partial<Parameters<typeof startBroker>[0]> = {}): Promise<Broker> =>
  startBroker({ dataDir, listen: '127.0.0.1:0', log: silentLog, version: '0', ...over });

const ask = (broker: Broker, method: string, pathname: string, key = broker.adminKey, ca = broker.caPem, more = {}) =>
  send({ method, url: broker.url + pathname, ca, headers: { authorization: `Bearer ${key}`, ...more } });

/** As a company's CA would issue it: certificate, root and key in files. */
async function issued(name: string, names = ['127.0.0.1']) {
  const made = await servingCertificates(path.join(dir, `ca-${name}`), names, Date.now());
  const files = { certFile: path.join(dir, `${name}.pem`), keyFile: path.join(dir, `${name}-key.pem`) };
  await writeFile(files.certFile, made.certPem);
  await writeFile(files.keyFile, made.keyPem);
  return { ...made, ...files };
}

describe("a certificate of the operator's own", () => {
  test('is shown, and its root is what clients pin', async () => {
    const own = await issued('company');
    const broker = await start(path.join(dir, 'own'), { certificate: own });
    expect([broker.caHash, broker.caPem.trim()]).toEqual([own.caHash, own.caPem.trim()]);
    expect((await ask(broker, 'GET', '/v1/tenant', broker.adminKey, own.caPem)).status).toBe(200);
    const shown = await new Promise<string>((resolve, reject) => {
      const socket = connect({ port: broker.port, host: '127.0.0.1', ca: own.caPem }, () => {
        resolve(socket.getPeerX509Certificate()?.toString() ?? '');
        socket.destroy();
      });
      socket.on('error', reject);
    });
    expect(own.certPem).toContain(shown.trim());
    await broker.close();
  });

  test('without a root in the file pins nothing', async () => {
    const own = await issued('public');
    const [serving = ''] = own.certPem.split(/(?<=-----END CERTIFICATE-----)/);
    await writeFile(own.certFile, serving);
    expect(await readCertificate(own, '127.0.0.1', Date.now())).not.toHaveProperty('caHash');
  });

  test('that cannot serve is refused, saying which file and why', async () => {
    const [own, other] = [await issued('one'), await issued('two')];
    const read = (over: Partial<typeof own>, name = '127.0.0.1', now = Date.now()) =>
      readCertificate({ ...own, ...over }, name, now);
    const garbage = path.join(dir, 'garbage.pem');
    await writeFile(garbage, 'nothing');
    const cases = [
      [() => read({ keyFile: other.keyFile }), 'tls-key', 'is not the key of'],
      [() => read({}, 'broker.example.com'), 'tls-cert', 'broker.example.com'],
      [() => read({}, '127.0.0.1', Date.now() + 400 * 86_400_000), 'tls-cert', 'expired'],
      [() => read({ certFile: garbage }), 'tls-cert', 'no certificate'],
      [() => read({ keyFile: garbage }), 'tls-key', 'no private key'],
      [() => read({ keyFile: path.join(dir, 'absent') }), 'tls-key', 'cannot be read'],
    ] as const;
    for (const [outcome, field, says] of cases) {
      await expect(outcome()).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringContaining(says),
        detail: { field },
      });
    }
  });
});

describe('a proxy in front', () => {
  const message = (remoteAddress: string, forwarded?: string): IncomingMessage =>
    ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage;
  const proxies = trustProxies(['10.0.0.0/8', '192.0.2.7', 'fd00::/8']);

  test.each([
    { from: '198.51.100.1', forwarded: '203.0.113.9', client: '198.51.100.1' },
    { from: '10.1.1.1', forwarded: '203.0.113.9', client: '203.0.113.9' },
    { from: '::ffff:10.1.1.1', forwarded: '1.1.1.1, 203.0.113.9, 192.0.2.7', client: '203.0.113.9' },
    { from: 'fd00::1', forwarded: '2001:db8::1', client: '2001:db8::1' },
    { from: '10.1.1.1', forwarded: undefined, client: '10.1.1.1' },
    { from: '10.1.1.1', forwarded: 'unknown', client: '10.1.1.1' },
    { from: '10.1.1.1', forwarded: '10.2.2.2', client: '10.2.2.2' },
  ])('from $from with $forwarded the client is $client', ({ from, forwarded, client }) => {
    expect(proxies.clientOf(message(from, forwarded))).toBe(client);
  });

  test.each(['10.0.0.0/33', 'proxy.example', '10.0.0.0/', '::/129', '1.2.3.4/8/8'])('%s is refused', (range) => {
    expect(() => trustProxies([range])).toThrow('trusted-proxy');
  });

  test('that is trusted is not what the audit log names', async () => {
    const broker = await start(path.join(dir, 'proxied'), { trustedProxies: ['127.0.0.0/8'] });
    const body = JSON.stringify({ name: 'x', role: 'viewer' });
    await send({
      method: 'POST',
      url: `${broker.url}/v1/keys`,
      ca: broker.caPem,
      headers: {
        authorization: `Bearer ${broker.adminKey}`,
        'content-type': 'application/json',
        'x-forwarded-for': '203.0.113.9',
      },
      body,
    });
    const audit = await ask(broker, 'GET', '/v1/audit?limit=1');
    expect(audit.body.items[0]).toMatchObject({ action: 'api-key.create', from: '203.0.113.9' });
    await broker.close();
  });
});

describe('a copy of the data', () => {
  test('is made while the broker writes, is whole, and comes back with its keys and its authority', async () => {
    const [data, copy, back] = ['live', 'copy', 'back'].map((name) => path.join(dir, name)) as [string, string, string];
    const broker = await start(data);
    const made: number[] = [];
    const write = async (name: string) => {
      const { status } = await send({
        method: 'POST',
        url: `${broker.url}/v1/keys`,
        ca: broker.caPem,
        headers: { authorization: `Bearer ${broker.adminKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name, role: 'viewer' }),
      });
      made.push(status);
    };
    await write('before');
    const writing = Promise.all(Array.from({ length: 40 }, (_, i) => write(`during-${i}`)));
    await backUp(data, copy);
    await writing;
    expect(new Set(made)).toEqual(new Set([201]));
    await expect(restore(copy, data)).rejects.toMatchObject({ code: 'invalid_input', detail: { field: 'data' } });
    await broker.close();
    expect((await stat(copy)).mode & 0o077).toBe(0);

    await restore(copy, back);
    const second = await start(back);
    expect([second.caHash, second.adminKey]).toEqual([broker.caHash, undefined]);
    const keys = await ask(second, 'GET', '/v1/keys', broker.adminKey);
    expect(keys.body.items.map(({ name }: { name: string }) => name)).toContain('before');
    const key = (at: string) => readFile(path.join(at, 'webhooks.key'), 'utf8');
    expect(await key(back)).toBe(await key(data));
    await second.close();
  });

  test('is neither made of nothing, nor over something, nor taken from what is damaged', async () => {
    const [data, copy] = ['small', 'small-copy'].map((name) => path.join(dir, name)) as [string, string];
    await expect(backUp(path.join(dir, 'absent'), copy)).rejects.toMatchObject({ detail: { field: 'data' } });
    await (await start(data)).close();
    await backUp(data, copy);
    await expect(backUp(data, copy)).rejects.toMatchObject({ detail: { field: 'to' } });
    const damaged = path.join(dir, 'damaged');
    await cp(copy, damaged, { recursive: true });
    const file = path.join(damaged, 'broker.db');
    const bytes = await readFile(file);
    bytes.fill(0xff, 4_096, 12_288);
    await writeFile(file, bytes);
    await expect(restore(damaged, path.join(dir, 'of-damaged'))).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('is damaged'),
    });
    await expect(restore(data, data)).rejects.toMatchObject({ detail: { field: 'data' } });
  });
});
