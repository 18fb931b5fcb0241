import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { missingPackages } from './debian-packages.ts';

test('a package counts as installed when its file is there, program or not, or its program is on the path', async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'isthmus-packages-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const font = path.join(dir, 'Sans.ttf');
  await writeFile(font, '', { mode: 0o644 });
  const packages = [
    { name: 'fonts', proof: font },
    { name: 'absent-fonts', proof: path.join(dir, 'Serif.ttf') },
    { name: 'shell', proof: 'sh' },
    { name: 'absent-program', proof: 'no-such-program-of-any-package' },
  ];
  expect(await missingPackages(packages)).toEqual(['absent-fonts', 'absent-program']);
});
