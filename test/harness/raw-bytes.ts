/** Bytes as a hostile network may send them to a server of ours: HTTP, TLS and WebSocket frames, made and damaged, and what became of the connection. */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import fc from 'fast-check';

/** What the client does after the last byte: it closes its half, breaks the connection, or says nothing more and stays. */
type Ending = 'end' | 'cut' | 'stay';

export interface Attempt {
  /** Each is a write of its own. */
  readonly pieces: readonly Buffer[];
  readonly ending: Ending;
  /** Before, and so instead of, the handshake of a server with TLS. */
  readonly withoutTls: boolean;
}

const method = fc.constantFrom(
  'GET',
  'GET',
  'POST',
  'POST',
  'CONNECT',
  'PUT',
  'OPTIONS',
  'get',
  '',
  'PRI',
  'G\0T',
  'X'.repeat(3_000),
);
const version = fc.constantFrom(
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/2.0',
  'HTTP/9.9',
  '',
  'HTTP/1.1 x',
);
const oddTargets = ['/', '*', '//', '/../..', '/%00', 'http://other/', 'a b', '\0', `/${'a'.repeat(20_000)}`];
const headerName = fc.constantFrom(
  ...['Host', 'Content-Length', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Upgrade', 'Expect', 'Cookie'],
  ...['Authorization', 'Proxy-Authorization', 'Sec-WebSocket-Key', 'Sec-WebSocket-Version', 'X', 'a b', '\0', ''],
);
const headerValue = fc.constantFrom(
  ...[
    '0',
    '5',
    '-1',
    '1e3',
    '99999999999999999999',
    'chunked',
    'chunked, chunked',
    'gzip',
    'close',
    'keep-alive',
    'Upgrade',
  ],
  ...[
    'websocket',
    'SPDY/3.1',
    '13',
    'dGhlIHNhbXBsZSBub25jZQ==',
    'Bearer x',
    'Bearer a.b.c',
    '100-continue',
    '',
    '\0',
    'é',
  ],
  ...['x\r\n injected: y', 'x'.repeat(70_000)],
);
const header = fc.tuple(headerName, headerValue).map(([name, value]) => `${name}: ${value}`);
const body = fc.oneof(
  fc.constantFrom(
    '',
    '',
    '{}',
    '{"kind":"AdmissionReview"',
    '5\r\nhello\r\n0\r\n\r\n',
    'ffffffffffffffff\r\n',
    '-1\r\n',
  ),
  fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
);

function request(targets: readonly string[]): fc.Arbitrary<Buffer> {
  return fc
    .record({
      method,
      target: fc.constantFrom(...targets, ...targets, ...oddTargets),
      version,
      headers: fc.array(header, { maxLength: 12 }),
      many: fc.option(fc.integer({ min: 100, max: 3_000 }), { nil: 0, freq: 8 }),
      line: fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r'),
      body,
      cut: fc.option(fc.nat(400), { nil: undefined, freq: 4 }),
    })
    .map(({ method: how, target, version: as, headers, many, line, body: rest, cut }) => {
      const lines = [`${how} ${target} ${as}`, ...headers, ...Array.from({ length: many }, (_, i) => `h${i}: v`)];
      const bytes = Buffer.from(`${lines.join(line)}${line}${line}${rest}`, 'latin1');
      return cut === undefined ? bytes : bytes.subarray(0, cut);
    });
}

/** TLS records of any kind and announced length, the hello of a client among them. */
const tlsRecord = fc
  .tuple(
    fc.constantFrom(20, 21, 22, 23, 128),
    fc.constantFrom(0, 1, 3, 4),
    fc.nat(65_535),
    fc.uint8Array({ maxLength: 600 }),
  )
  .map(([kind, minor, length, rest]) =>
    Buffer.concat([Buffer.from([kind, 3, minor, length >> 8, length & 255, 1]), rest]),
  );
const silence = Buffer.alloc(0);
const noise = fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes));

/** Frames of RFC 6455 with any opcode, reserved bits, lengths that promise more than comes, and text that is no JSON. */
export const webSocketFrames: fc.Arbitrary<Buffer> = fc
  .array(
    fc
      .record({
        first: fc.oneof(fc.constantFrom(0x81, 0x82, 0x88, 0x89, 0x8a, 0x01, 0x00, 0x80), fc.nat(255)),
        isMasked: fc.boolean(),
        length: fc.oneof(fc.constantFrom(0, 1, 125, 126, 127), fc.nat(127)),
        rest: fc.oneof(
          fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
          fc
            .constantFrom('{}', '{"type":"ping"}', '{"type":"desired","revision":1e999}', '[]')
            .map((text) => Buffer.from(text)),
        ),
      })
      .map(({ first, isMasked, length, rest }) =>
        Buffer.concat([Buffer.from([first, (isMasked ? 128 : 0) | length]), rest]),
      ),
    { minLength: 1, maxLength: 4 },
  )
  .map((frames) => Buffer.concat(frames));

function inPieces(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...places, bytes.length]
    .map((place, i) => bytes.subarray(places[i - 1] ?? 0, place))
    .filter(({ length }) => length > 0);
}

/** `targets`: paths that the server knows, besides odd ones. */
export const anyAttempt = (targets: readonly string[]): fc.Arbitrary<Attempt> =>
  fc
    .record({
      bytes: fc.oneof(
        { weight: 12, arbitrary: request(targets) },
        { weight: 2, arbitrary: fc.tuple(request(targets), request(targets)).map((two) => Buffer.concat(two)) },
        { weight: 1, arbitrary: tlsRecord },
        { weight: 1, arbitrary: noise },
        { weight: 1, arbitrary: fc.constant(silence) },
      ),
      at: fc.array(fc.nat(30_000), { maxLength: 4 }),
      ending: fc.constantFrom<Ending>('end', 'end', 'cut', 'stay'),
      withoutTls: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
    })
    .map(({ bytes, at, ending, withoutTls }) => {
      const pieces = inPieces(bytes, at);
      // Of a failure a few lines are read; its seed has the rest.
      const shown = () =>
        `${withoutTls ? 'without TLS ' : ''}${JSON.stringify(bytes.toString('latin1').slice(0, 400))} ${ending}`;
      return Object.assign({ pieces, ending, withoutTls }, { [fc.toStringMethod]: shown });
    });

export interface Outcome {
  /** Status codes of the answers, in order. */
  readonly statuses: readonly number[];
  readonly text: string;
}

export interface Target {
  readonly port: number;
  /** Absent: the server speaks no TLS. */
  readonly ca?: string;
}

/** The connection must end within this, also when the client stays: no limit of a server under test is near it. */
const deadlineMs = 20_000;

/** Fails when the server leaves the connection open. */
export function send({ port, ca }: Target, { pieces, ending, withoutTls }: Attempt): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const isPlain = ca === undefined || withoutTls;
    const socket: Socket = isPlain
      ? connectTcp({ port, host: '127.0.0.1' })
      : connectTls({ port, host: '127.0.0.1', ca, servername: 'localhost', rejectUnauthorized: false });
    const chunks: Buffer[] = [];
    const late = setTimeout(() => {
      socket.destroy();
      reject(new Error(`the server left the connection open for ${deadlineMs} ms (the client did: ${ending})`));
    }, deadlineMs);
    socket.on('data', (chunk) => chunks.push(chunk));
    // A server that cuts the connection while this side still writes.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      clearTimeout(late);
      const text = Buffer.concat(chunks).toString('latin1');
      resolve({ statuses: [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status)), text });
    });
    socket.once(isPlain ? 'connect' : 'secureConnect', () => {
      const write = (i: number): void => {
        const piece = pieces[i];
        if (piece !== undefined) return void socket.write(piece, () => setImmediate(() => write(i + 1)));
        if (ending === 'end') socket.end();
        if (ending === 'cut') socket.destroy();
      };
      write(0);
    });
  });
}
