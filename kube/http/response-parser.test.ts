import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ResponseParser } from './response-parser.ts';

function read(text: string, cuts: readonly number[] = []): ResponseParser {
  const bytes = Buffer.from(text, 'utf8');
  const answer = new ResponseParser();
  const ends = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b);
  let from = 0;
  for (const end of [...ends, bytes.length]) {
    if (end > from) answer.push(bytes.subarray(from, end));
    from = end;
  }
  return answer;
}

const sized = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"é":1}\n';
const chunked =
  'HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{"é":\r\n3;x=y\r\n1}\n\r\n0\r\nTrailer: x\r\n\r\n';

test.each([
  { what: 'of a told length', text: sized, status: 200, body: '{"é":1}\n' },
  { what: 'in chunks', text: chunked, status: 201, body: '{"é":1}\n' },
  { what: 'without a body', text: 'HTTP/1.1 204 No Content\r\n\r\n', status: 204, body: '' },
  { what: 'of no length', text: 'HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n', status: 200, body: '' },
  {
    what: 'announced before',
    text: `HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${sized}`,
    status: 200,
    body: '{"é":1}\n',
  },
])('an answer $what is read the same however it is cut', ({ text, status, body }) => {
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 12 }), (cuts) => {
      const answer = read(text, cuts);
      expect([answer.isComplete, answer.status, answer.text(), answer.keepsOpen]).toEqual([true, status, body, true]);
    }),
  );
});

test('any body comes through in chunks of any sizes, cut anywhere', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1, unit: 'grapheme' })), fc.array(fc.nat()), (parts, cuts) => {
      const chunks = parts.map((part) => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`);
      const answer = read(`HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`, cuts);
      expect([answer.isComplete, answer.text()]).toEqual([true, parts.join('')]);
    }),
  );
});

test('an answer is not complete before its last byte', () => {
  for (const text of [sized, chunked]) {
    const bytes = Buffer.from(text);
    for (let length = 1; length < bytes.length; length++) {
      const answer = new ResponseParser();
      answer.push(bytes.subarray(0, length));
      expect([answer.isComplete, answer.end()]).toEqual([false, false]);
    }
  }
});

test('an answer without a length lasts until the connection ends', () => {
  const answer = read('HTTP/1.1 200 OK\r\n\r\nhalf');
  expect(answer.isComplete).toBe(false);
  answer.push(Buffer.from(' and half'));
  expect([answer.end(), answer.text(), answer.keepsOpen]).toEqual([true, 'half and half', false]);
});

test.each([
  'HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 0\r\n\r\n',
  'HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n',
])('after %j the connection serves no other request', (text) => {
  const answer = read(text);
  expect([answer.isComplete, answer.keepsOpen]).toEqual([true, false]);
});

test('headers are found in lower case, those that come twice with all they say', () => {
  const { headers } = read(
    'HTTP/1.1 429 Too Many\r\nRetry-After:  3 \r\nWarning: a\r\nWARNING: b\r\nContent-Length: 0\r\n\r\n',
  );
  expect(headers).toEqual({ 'retry-after': '3', warning: 'a, b', 'content-length': '0' });
});

test.each([
  'SSH-2.0-OpenSSH_9.2\r\n\r\n',
  'HTTP/2 200 OK\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n',
  'HTTP/1.1 200 OK\r\nno header\r\n\r\n',
  `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(70_000)}`,
  'HTTP/1.1 200 OK\r\ncontent-length: 600000000\r\n\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n24000000\r\n',
])('%.60j is refused', (text) => {
  expect(() => read(text)).toThrow(SyntaxError);
});

test('a server that never ends its answer is not listened to beyond what can be read', () => {
  const answer = read('HTTP/1.1 200 OK\r\n\r\n');
  const piece = Buffer.alloc(1 << 20);
  expect(() => {
    for (let i = 0; i < 1_000; i++) answer.push(piece);
  }).toThrow('an HTTP answer of more than 511 MiB');
});
