/** docs/reference/errors.md: every error code with its cause and remedy. */
import { type CodeFacts, codes } from '#shared/errors/codes.ts';
import { generatedNote, page, table } from './markdown.ts';

const sentence = (text: string): string =>
  `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;

function section([code, facts]: readonly [string, CodeFacts]): string {
  return page(
    `## ${code}`,
    sentence(facts.cause),
    `**What to do:** ${sentence(facts.remedy)}`,
    `HTTP ${facts.http} · exit code ${facts.exit} · ${facts.retry ? 'retrying may help' : 'retrying alone does not help'}`,
  ).trimEnd();
}

export function errorsPage(): string {
  const all = Object.entries<CodeFacts>(codes);
  return page(
    generatedNote('shared/errors/codes.ts'),
    '# Errors',
    'The API answers errors as problem documents (RFC 9457) whose `code` is one of these; the command line prints the code and ends with the exit code; agents put it into conditions and events. Messages may change between versions, codes do not.',
    table(
      ['code', 'HTTP', 'exit code', 'retry'],
      all.map(([code, facts]) => [
        `[\`${code}\`](#${code})`,
        String(facts.http),
        String(facts.exit),
        facts.retry ? 'may help' : 'no',
      ]),
    ),
    ...all.map(section),
  );
}
