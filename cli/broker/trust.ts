/** Trust in a broker with a self-signed CA: by the hash of that CA. */
import { createHash, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { AppError } from '#shared/errors/app-error.ts';

const timeoutMs = 10_000;

export const sha256Of = (pem: string): string =>
  createHash('sha256').update(new X509Certificate(pem).raw).digest('hex');

/** Leaf first; a root names itself as its issuer. */
function chainOf(leaf: DetailedPeerCertificate | undefined): string[] {
  const seen = new Set<string>();
  const chain: string[] = [];
  for (let at = leaf; at?.raw && !seen.has(at.fingerprint256); at = at.issuerCertificate) {
    seen.add(at.fingerprint256);
    chain.push(new X509Certificate(at.raw).toString());
  }
  return chain;
}

interface Shown {
  /** Whether the certificates that come with Node vouch for it, for this very name. */
  readonly publiclyTrusted: boolean;
  readonly chain: readonly string[];
}

/** Looks at the broker's certificate chain. Nothing is sent over this connection, so verification can wait until the hash is known. */
function certificatesOf(url: URL): Promise<Shown> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause?: unknown) => {
      socket.destroy();
      reject(
        new AppError('broker_unreachable', `the broker at ${url.origin} cannot be reached: ${why}`, {
          cause,
          detail: { url: url.origin },
        }),
      );
    };
    const socket = connect(
      {
        host,
        port: Number(url.port || 443),
        rejectUnauthorized: false,
        ...(isIP(host) === 0 && { servername: host }),
      },
      () => {
        const chain = chainOf(socket.getPeerCertificate(true));
        resolve({ publiclyTrusted: socket.authorized, chain });
        socket.destroy();
      },
    );
    socket.setTimeout(timeoutMs, () => fail(`no answer within ${timeoutMs / 1_000} s`));
    socket.on('error', (cause) => fail(cause.message, cause));
  });
}

/** The PEM to trust from now on; undefined when public trust is enough. */
export async function trustBroker(url: URL, asked: { readonly caHash?: string }): Promise<string | undefined> {
  const { publiclyTrusted, chain } = await certificatesOf(url);
  const root = chain.at(-1);
  if (asked.caHash !== undefined) {
    const wanted = asked.caHash.toLowerCase().replace(/^sha256:/, '');
    const found = chain.find((pem) => sha256Of(pem) === wanted);
    if (found !== undefined) return found;
    throw new AppError(
      'unauthenticated',
      `the broker at ${url.origin} shows no certificate with SHA-256 ${wanted}${root ? `; its CA has ${sha256Of(root)}` : ''}`,
      {
        detail: {
          field: 'ca-hash',
          remedy:
            'compare with the line that `isthmus broker serve` printed; if it differs, another server answers there',
        },
      },
    );
  }
  if (publiclyTrusted) return undefined;
  throw new AppError(
    'unauthenticated',
    `the certificate of ${url.origin} is signed by no trusted CA${root ? `; its CA has SHA-256 ${sha256Of(root)}` : ''}`,
    {
      detail: {
        field: 'ca-hash',
        ...(root !== undefined && { caHash: sha256Of(root) }),
        remedy: `compare the hash with what \`isthmus broker serve\` printed, then repeat with --ca-hash HASH, or give the CA certificate with --ca-file FILE`,
      },
    },
  );
}
