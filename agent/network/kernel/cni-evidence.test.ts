import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readCniEvidence } from './cni-evidence.ts';

const root = mkdtempSync(path.join(os.tmpdir(), 'isthmus-cni-'));
afterAll(() => rmSync(root, { recursive: true }));

test('files of the CNI and names of devices are found', () => {
  mkdirSync(path.join(root, 'net'));
  const table = 'Inter-|   Receive\n face |bytes    packets\n    lo: 1 2\n  cni0:       0       0\n';
  writeFileSync(path.join(root, 'net', 'dev'), table);
  writeFileSync(path.join(root, '10-a.conflist'), '{}');
  writeFileSync(path.join(root, 'README'), 'x');
  expect(readCniEvidence(['/nowhere', root], root)).toEqual({
    configurations: { '10-a.conflist': '{}' },
    daemonSets: [],
    devices: ['lo', 'cni0'],
  });
});

test('the first folder that has a configuration counts', () => {
  const [first, second] = ['k3s', 'etc'].map((name) => path.join(root, name)) as [string, string];
  for (const folder of [first, second]) mkdirSync(folder);
  writeFileSync(path.join(first, 'README'), 'x');
  writeFileSync(path.join(second, '10-b.conflist'), '{"name":"b"}');
  expect(readCniEvidence([first, second], '/nowhere').configurations).toEqual({ '10-b.conflist': '{"name":"b"}' });
  writeFileSync(path.join(first, '10-a.conflist'), '{"name":"a"}');
  expect(readCniEvidence([first, second], '/nowhere').configurations).toEqual({ '10-a.conflist': '{"name":"a"}' });
});

test('what is not there says nothing', () => {
  expect(readCniEvidence(['/nowhere'], '/nowhere')).toEqual({ configurations: {}, daemonSets: [], devices: [] });
});
