/** docs/reference/causes.md: what `isthmus doctor` can find, with exit codes. */
import { causeCodes, causes, exitOf } from '#cli/doctor/causes.ts';
import { code, generatedNote, page, table } from './markdown.ts';

export const causesPage = (): string =>
  page(
    generatedNote('cli/doctor/causes.ts'),
    '# Causes that `isthmus doctor` names',
    'In the order of the search: what stands above can bring about what stands below. The exit code is that of the area; 0 is for nothing wrong, codes below 10 are those of every command.',
    table(
      ['code', 'area', 'exit code', 'what it means'],
      causeCodes.map((one) => [code(one), causes[one][0], String(exitOf(one)), causes[one][1]]),
    ),
  );
