import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DocumentStream } from './document-stream.ts';

test('documents come out the same however the stream is cut, also inside a character', () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue()),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (documents, cuts) => {
        const bytes = Buffer.from(documents.map((document) => `${JSON.stringify(document)}\n`).join(''));
        const seen: unknown[] = [];
        const lines = new DocumentStream((document) => void seen.push(document));
        for (let from = 0, i = 0; from < bytes.length; i++) {
          const size = cuts[i % cuts.length] ?? 1;
          lines.push(bytes.subarray(from, from + size));
          from += size;
        }
        expect(seen).toEqual(JSON.parse(JSON.stringify(documents)));
      },
    ),
  );
});

test('a document of 8 MB that comes in small pieces costs time in proportion', () => {
  const document = Buffer.from(`${JSON.stringify('x'.repeat(8_000_000))}\n`);
  let length = 0;
  const lines = new DocumentStream((text) => {
    length = (text as string).length;
  });
  const before = process.cpuUsage();
  for (let from = 0; from < document.length; from += 1_000) lines.push(document.subarray(from, from + 1_000));
  expect(length).toBe(8_000_000);
  // Copying all that came so far with each piece would be 32 GB.
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(2_000);
});

test('a document that never ends is given up before it fills memory', () => {
  const lines = new DocumentStream(() => undefined);
  const piece = Buffer.alloc(1 << 20, 'x');
  expect(() => {
    for (let i = 0; i < 100; i++) lines.push(piece);
  }).toThrow(SyntaxError);
});
