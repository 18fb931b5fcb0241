/** The connection between two movers: TLS 1.3, each side accepts the one certificate of the other. Over it runs rsync as over any remote shell. */
import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { connect, createServer, type Server, type TLSSocket } from 'node:tls';
import { watchdog } from '#shared/async/idle-timeout.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type Checksum, checksumOf } from './checksum.ts';
import { isSenderCommand } from './rsync.ts';

export const moverPort = 8730;
/** Where a pod has a volume of mode Block. */
export const moverDevice = '/dev/volume';

export interface Sending {
  readonly port: number;
  /** A folder, with a slash at its end, or a block device. */
  readonly source: string;
  /** The program. */
  readonly rsync?: string;
  readonly clock: Clock;
}

export interface Identity {
  readonly certificate: string;
  readonly privateKey: string;
  /** The certificate of the other side. */
  readonly peer: string;
}

const longestCommand = 8_192;
const tellMs = 1_000;
/** What a mover that reads a device is not silent for. */
const silentMs = 60_000;

const isPeer = (socket: TLSSocket, peer: Buffer): boolean => socket.getPeerCertificate().raw?.equals(peer) ?? false;

const tlsOf = ({ certificate, privateKey }: Identity) =>
  ({ cert: certificate, key: privateKey, minVersion: 'TLSv1.3', allowHalfOpen: true }) as const;

/** Sends it to the one peer. */
export function serveVolume(identity: Identity, sending: Sending): Promise<Server> {
  const peer = new X509Certificate(identity.peer).raw;
  // Certificates are compared, not verified: each is its own authority.
  const server = createServer({ ...tlsOf(identity), requestCert: true, rejectUnauthorized: false }, (socket) => {
    socket.on('error', () => socket.destroy());
    if (isPeer(socket, peer)) answer(socket, sending);
    else socket.destroy();
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(sending.port, () => resolve(server));
  });
}

/** First a line of JSON with the command, then what goes to it. */
function answer(socket: TLSSocket, { source, clock, rsync = 'rsync' }: Sending): void {
  let head = Buffer.alloc(0);
  const read = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf(0x0a);
    if (end < 0) {
      if (head.length > longestCommand) socket.destroy();
      return;
    }
    socket.off('data', read);
    socket.pause();
    const command = commandOf(head.subarray(0, end).toString('utf8'), source);
    if (command === undefined) return void socket.destroy();
    if (command.length === 0) return void socket.end();
    if (isChecksumCommand(command)) return void sendChecksum(socket, source, clock);
    start(socket, rsync, command, head.subarray(end + 1));
  };
  socket.on('data', read);
}

/** Empty: the caller only asks whether this mover is there. */
function commandOf(line: string, source: string): readonly string[] | undefined {
  try {
    const command = JSON.parse(line) as unknown;
    if (!Array.isArray(command) || !command.every((part) => typeof part === 'string')) return undefined;
    const isKnown = command.length === 0 || isChecksumCommand(command) || isSenderCommand(command, source);
    return isKnown ? command : undefined;
  } catch {
    return undefined;
  }
}

const isChecksumCommand = (command: readonly string[]): boolean => command.length === 1 && command[0] === 'checksum';

/** Lines of JSON: how far it is, so that no link takes the connection for idle, and in the end the whole. */
async function sendChecksum(socket: TLSSocket, device: string, clock: Clock): Promise<void> {
  const asked = new AbortController();
  socket.once('close', () => asked.abort());
  let toldMs = clock.now();
  const tell = (bytes: number): void => {
    if (clock.now() - toldMs < tellMs) return;
    toldMs = clock.now();
    socket.write(`${JSON.stringify({ bytes })}\n`);
  };
  try {
    const sum = await checksumOf(device, tell, asked.signal);
    socket.end(`${JSON.stringify(sum)}\n`);
  } catch {
    socket.destroy();
  }
}

function start(socket: TLSSocket, rsync: string, [, ...args]: readonly string[], first: Buffer): void {
  const child = spawn(rsync, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.on('error', () => socket.destroy());
  child.stdin.on('error', () => undefined);
  child.stdin.write(first);
  socket.pipe(child.stdin);
  child.stdout.pipe(socket);
  socket.on('close', () => child.kill());
}

function open(identity: Identity, host: string, port: number): Promise<TLSSocket> {
  const peer = new X509Certificate(identity.peer).raw;
  return new Promise((resolve, reject) => {
    const socket = connect({ ...tlsOf(identity), host, port, rejectUnauthorized: false, timeout: 10_000 });
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    socket.once('error', fail);
    const late = (): void => fail(new AppError('deadline_exceeded', `${host}:${port} did not answer in 10 s`));
    socket.once('timeout', late);
    socket.once('secureConnect', () => {
      if (!isPeer(socket, peer))
        return fail(
          new AppError('unauthenticated', `${host}:${port} has another certificate than the mover of this move`),
        );
      socket.setTimeout(0);
      socket.off('timeout', late);
      socket.off('error', fail);
      resolve(socket);
    });
  });
}

/** Fails when the mover with the data cannot be reached, or is not the right one. */
export async function greet(identity: Identity, host: string, port: number): Promise<void> {
  const socket = await open(identity, host, port);
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('end', () => resolve());
    socket.once('close', () => resolve());
    socket.resume();
    socket.end('[]\n');
  });
  socket.destroy();
}

/** Of the device of the mover with the data. */
export async function askChecksum(
  identity: Identity,
  { host, port, clock }: { readonly host: string; readonly port: number; readonly clock: Clock },
  signal: AbortSignal,
): Promise<Checksum> {
  const socket = await open(identity, host, port);
  const silence = watchdog(clock, { idleMs: silentMs }, () =>
    socket.destroy(new AppError('deadline_exceeded', `${host}:${port} went silent`)),
  );
  const end = (): void => void socket.destroy();
  signal.addEventListener('abort', end, { once: true });
  try {
    signal.throwIfAborted();
    const text = await new Promise<string>((resolve, reject) => {
      let said = '';
      socket.setEncoding('utf8').on('data', (piece: string) => {
        said += piece;
        silence.touch();
      });
      socket.once('error', reject);
      socket.once('close', () => resolve(said));
      socket.once('end', () => resolve(said));
      socket.end('["checksum"]\n');
    });
    const last = JSON.parse(text.trim().split('\n').at(-1) || '{}') as Partial<Checksum>;
    if (last.bytes === undefined || last.sha256 === undefined)
      throw new AppError('command_failed', `${host}:${port} ended before it had read its device`);
    return { bytes: last.bytes, sha256: last.sha256 };
  } finally {
    signal.removeEventListener('abort', end);
    silence.stop();
    socket.destroy();
  }
}

/** What rsync calls as its remote shell; returns when the command on the other side has ended, for which rsync waits with its end open. */
export async function dial(identity: Identity, host: string, port: number, command: readonly string[]): Promise<void> {
  const socket = await open(identity, host, port);
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('close', () => resolve());
    socket.once('end', () => resolve());
    socket.write(`${JSON.stringify(command)}\n`);
    process.stdin.pipe(socket);
    socket.pipe(process.stdout);
    process.stdout.on('error', () => socket.destroy());
  });
}
