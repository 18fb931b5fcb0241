import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { servingCertificates } from './certificates.ts';

const now = Date.now();
let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-tls-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe('the broker certificates', () => {
  test('are the same at the next start', async () => {
    const first = await servingCertificates(dir, ['127.0.0.1', 'localhost'], now);
    const second = await servingCertificates(dir, ['localhost'], now + 1_000);
    expect(second).toEqual(first);
  });

  test('cover a new name with a new serving certificate of the same authority', async () => {
    const first = await servingCertificates(dir, ['127.0.0.1'], now);
    const second = await servingCertificates(dir, ['127.0.0.1', 'broker.example.com'], now);
    expect(second.caHash).toBe(first.caHash);
    expect(second.certPem).not.toBe(first.certPem);
  });

  test('are renewed 30 days before their end', async () => {
    const first = await servingCertificates(dir, ['127.0.0.1'], now);
    const second = await servingCertificates(dir, ['127.0.0.1'], first.renewAt + 60_000);
    expect(second.caHash).toBe(first.caHash);
    expect(second.renewAt).toBeGreaterThan(first.renewAt);
  });

  test('are readable by their owner only', async () => {
    await servingCertificates(dir, ['127.0.0.1'], now);
    const modes = await Promise.all(
      (await readdir(dir)).map(async (file) => (await stat(path.join(dir, file))).mode & 0o777),
    );
    expect(modes).toEqual([0o600, 0o600, 0o600]);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
  });

  test.each(['127.0.0.1', 'localhost'])(
    'are accepted by a client that trusts the authority and calls %s',
    async (host) => {
      const { caPem, certPem, keyPem } = await servingCertificates(dir, ['127.0.0.1', 'localhost', '::1'], now);
      const server = createServer({ cert: certPem, key: keyPem });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const authorized = await new Promise<boolean>((resolve, reject) => {
        const socket = connect(
          {
            host: '127.0.0.1',
            port: (server.address() as AddressInfo).port,
            servername: host === 'localhost' ? host : '',
            ca: caPem,
          },
          () => {
            resolve(socket.authorized);
            socket.destroy();
          },
        );
        socket.on('error', reject);
      });
      server.close();
      expect(authorized).toBe(true);
    },
  );
});
