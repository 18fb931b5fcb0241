import { expect, test } from 'vitest';
import { missingPackages } from './debian-packages.ts';

test('names the packages whose proof is neither on the path nor a file', async () => {
  const packages = [
    { name: 'coreutils', proof: 'cat' },
    { name: 'shell', proof: '/bin/sh' },
    { name: 'absent', proof: 'no-such-program-anywhere' },
    { name: 'absent-file', proof: '/no/such/file' },
  ];
  expect(await missingPackages(packages)).toEqual(['absent', 'absent-file']);
});
