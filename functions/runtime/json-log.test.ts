import { expect, test } from 'vitest';
import { createJsonLog } from './json-log.ts';

test("the broker's log holds no credential at any depth, nor in bound fields, nor in causes", () => {
  const lines: string[] = [];
  const log = createJsonLog('debug', { write: (line) => void lines.push(line) });
  const cause = Object.assign(new Error('inner'), { detail: { kubeconfig: 's3cret' } });
  log.with({ token: 's3cret' }).info('joined', { a: [{ b: { c: new Map([['nonce', 's3cret']]) } }] });
  log.error('failed', new Error('outer', { cause }));
  expect(lines).toHaveLength(2);
  expect(lines.join('')).not.toContain('s3cret');
  expect(lines[1]).toContain('"inner"');
});
