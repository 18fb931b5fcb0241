import { X509Certificate } from 'node:crypto';
import tls from 'node:tls';
import { expect, test } from 'vitest';
import { CertificateAuthority } from './pki.ts';

test('issues certificates that a TLS client and server accept from each other, and only for the names in them', async () => {
  const ca = await CertificateAuthority.create('kubernetes');
  const [server, client] = await Promise.all([
    ca.issue({ commonName: 'server', dnsNames: ['localhost'], ips: ['127.0.0.1'] }),
    ca.issue({ commonName: 'admin', organization: 'system:masters' }),
  ]);
  expect(new X509Certificate(client.cert).subject).toBe('O=system:masters\nCN=admin');
  const listener = tls.createServer(
    { ...server, ca: ca.cert, requestCert: true, rejectUnauthorized: true },
    (socket) => {
      socket.end(String(socket.getPeerCertificate().subject.CN));
    },
  );
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as { port: number };
  const call = (servername: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = tls.connect({
        host: '127.0.0.1',
        port,
        servername,
        ca: ca.cert,
        cert: client.cert,
        key: client.key,
      });
      socket.on('data', (data: Buffer) => resolve(data.toString())).on('error', reject);
    });
  expect(await call('localhost')).toBe('admin');
  await expect(call('elsewhere')).rejects.toThrow(/does not match/);
  listener.close();
});
