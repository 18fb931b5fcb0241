/** The hand-made certificate as other implementations read it. */
import { createPublicKey, X509Certificate } from 'node:crypto';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { isFresh, issueServingCertificate, lifetimeMs, validCertificates } from '#agent/pki/webhook-certificate.ts';

const hosts = ['isthmus-webhook.liqo.svc', '127.0.0.1'];
const now = Date.now();

describe('the serving certificate', () => {
  test('names its hosts, is for servers only, and fits its key', () => {
    const { certificate, privateKey } = issueServingCertificate(hosts, now);
    const parsed = new X509Certificate(certificate);
    expect(parsed.checkHost('isthmus-webhook.liqo.svc')).toBeDefined();
    expect(parsed.checkIP('127.0.0.1')).toBeDefined();
    expect(parsed.checkHost('other.liqo.svc')).toBeUndefined();
    expect(parsed.ca).toBe(false);
    expect(parsed.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    expect(parsed.verify(parsed.publicKey)).toBe(true);
    expect(parsed.publicKey.equals(createPublicKey(privateKey))).toBe(true);
  });

  test('serves TLS to a client that trusts it alone', async () => {
    const { certificate: cert, privateKey: key } = issueServingCertificate(hosts, now);
    const server = createServer({ cert, key }, (socket) => socket.end('hello'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const said = await new Promise<string>((resolve, reject) => {
      const socket: TLSSocket = connect({ host: '127.0.0.1', port, ca: cert, servername: hosts[0] ?? '' }, () => {});
      socket.on('data', (data) => resolve(data.toString())).on('error', reject);
    });
    server.close();
    expect(said).toBe('hello');
  });

  test('two issued at the same time differ', () => {
    const [a, b] = [issueServingCertificate(hosts, now), issueServingCertificate(hosts, now)];
    expect(new X509Certificate(a.certificate).serialNumber).not.toBe(new X509Certificate(b.certificate).serialNumber);
  });

  test('is renewed after two thirds of its life, for other hosts, and when it does not parse', () => {
    const issued = issueServingCertificate(hosts, now);
    expect(isFresh(issued, hosts, now)).toBe(true);
    expect(isFresh(issued, hosts, now + lifetimeMs / 2)).toBe(true);
    expect(isFresh(issued, hosts, now + lifetimeMs * 0.7)).toBe(false);
    expect(isFresh(issued, [...hosts, 'another'], now)).toBe(false);
    expect(isFresh({ ...issued, certificate: 'garbage' }, hosts, now)).toBe(false);
    expect(isFresh({}, hosts, now)).toBe(false);
  });

  test('a bundle keeps what is still valid, in order', () => {
    const [old, young] = [issueServingCertificate(hosts, now), issueServingCertificate(hosts, now + lifetimeMs / 2)];
    const bundle = `${young.certificate}${old.certificate}not pem`;
    expect(validCertificates(bundle, now)).toEqual([young.certificate, old.certificate]);
    expect(validCertificates(bundle, now + lifetimeMs + 1_000)).toEqual([young.certificate]);
  });
});
