/** The certificate that the server shows: the broker's own, renewed in time, or the operator's, read again when its files change. */
import type { Server } from 'node:https';
import path from 'node:path';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { servingCertificates } from './certificates.ts';
import { type CertificateFiles, readCertificate, versionOfFiles } from './own-certificate.ts';

interface Serving {
  readonly dataDir: string;
  /** By which clients reach the broker; the first is that of its URL. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly certificate?: CertificateFiles | undefined;
}

interface Served {
  readonly caPem?: string;
  readonly caHash?: string;
  /** Until the signal aborts. */
  keepFresh(signal: AbortSignal): Promise<void>;
}

const renewalCheckMs = 6 * 3_600_000;
const fileCheckMs = 60_000;

interface Pair {
  readonly certPem: string;
  readonly keyPem: string;
}

const show = (server: Server, { certPem, keyPem }: Pair): void =>
  server.setSecureContext({ cert: certPem, key: keyPem, minVersion: 'TLSv1.2' });

async function every(ms: number, clock: Clock, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(ms, signal).catch(() => undefined);
    if (!signal.aborted) await work();
  }
}

export const serveCertificate = (server: Server, serving: Serving): Promise<Served> =>
  serving.certificate ? serveOwn(server, serving, serving.certificate) : serveMade(server, serving);

async function serveMade(server: Server, { dataDir, names, clock, log }: Serving): Promise<Served> {
  const make = () => servingCertificates(path.join(dataDir, 'tls'), names, clock.now());
  const { caPem, caHash, ...first } = await make();
  show(server, first);
  let { renewAt } = first;
  return {
    caPem,
    caHash,
    keepFresh: (signal) =>
      every(renewalCheckMs, clock, signal, async () => {
        if (clock.now() < renewAt) return;
        const next = await make();
        show(server, next);
        renewAt = next.renewAt;
        log.info('serving certificate renewed');
      }),
  };
}

async function serveOwn(server: Server, { names, clock, log }: Serving, files: CertificateFiles): Promise<Served> {
  const read = () => readCertificate(files, names[0] ?? '', clock.now());
  let version = await versionOfFiles(files).catch(() => '');
  const { caPem, caHash, ...first } = await read();
  show(server, first);
  return {
    ...(caPem !== undefined && { caPem }),
    ...(caHash !== undefined && { caHash }),
    keepFresh: (signal) =>
      every(fileCheckMs, clock, signal, async () => {
        // What is half written or wrong is tried again; the certificate before is shown until then.
        try {
          const found = await versionOfFiles(files);
          if (found === version) return;
          const next = await read();
          if (next.caHash !== caHash)
            log.warn('the new serving certificate has another root, which agents do not trust', {});
          show(server, next);
          version = found;
          log.info('serving certificate read again');
        } catch (error) {
          log.error('the serving certificate could not be read again', error);
        }
      }),
  };
}
