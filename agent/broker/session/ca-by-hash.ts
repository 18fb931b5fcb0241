/** Finds the broker's CA certificate by the hash in the join token: trust on first use is replaced by trust in the token. */
import { createHash, X509Certificate } from 'node:crypto';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { AppError } from '#shared/errors/app-error.ts';

const timeoutMs = 10_000;

/**
 * The PEM of the certificate in the broker's chain whose DER has this SHA-256. Fails with `broker_unreachable`, and with
 * `unauthenticated` when the broker shows another chain: then another server answers at this address.
 */
export function brokerCaByHash(url: URL, caHash: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (error: AppError) => {
      socket.destroy();
      reject(error);
    };
    // Not verified by TLS here on purpose: the hash decides, and nothing is sent over this connection.
    const socket = connect(
      {
        host: url.hostname.replace(/^\[|\]$/g, ''),
        port: Number(url.port || 443),
        rejectUnauthorized: false,
        ...(/^[\d.]+$|:/.test(url.hostname) ? {} : { servername: url.hostname }),
      },
      () => {
        const found = certificates(socket.getPeerCertificate(true)).find((der) => sha256(der) === caHash);
        if (!found) {
          return fail(
            new AppError(
              'unauthenticated',
              `the broker at ${url.origin} shows no certificate with SHA-256 ${caHash}; make a new join token with \`isthmus join\` at the right broker`,
            ),
          );
        }
        socket.destroy();
        resolve(new X509Certificate(found).toString());
      },
    );
    socket.setTimeout(timeoutMs, () =>
      fail(
        new AppError('broker_unreachable', `the broker at ${url.origin} did not answer within ${timeoutMs / 1000} s`),
      ),
    );
    socket.on('error', (cause) =>
      fail(new AppError('broker_unreachable', `cannot reach the broker at ${url.origin}: ${cause.message}`, { cause })),
    );
  });
}

const sha256 = (der: Buffer): string => createHash('sha256').update(der).digest('hex');

/** Leaf first; a self-signed root names itself as its issuer. */
function certificates(leaf: DetailedPeerCertificate): Buffer[] {
  const seen = new Set<string>();
  const out: Buffer[] = [];
  for (
    let at: DetailedPeerCertificate | undefined = leaf;
    at?.raw && !seen.has(at.fingerprint256);
    at = at.issuerCertificate
  ) {
    seen.add(at.fingerprint256);
    out.push(at.raw);
  }
  return out;
}
