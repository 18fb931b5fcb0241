/** The words rule: comments, test titles and documents name the component or the user that acts. */

/** Each word with what to write instead. */
export const fillers: Readonly<Record<string, string>> = {
  who: 'name the component, user or tenant that acts',
  whoever: 'name the component, user or tenant that acts',
  somebody: 'name the component, user or tenant that acts',
  someone: 'name the component, user or tenant that acts',
  nobody: 'name the component, or say what is absent ("no agent", "unused")',
  whatever: 'say which cases are meant ("for every input", "regardless of the order")',
  anew: 'write "again", or name the act: restart, recreate, retry, resync',
};

const person = '(?:administrator|author|caller|developer|engineer|member|operator|owner|people|person|reader|user)s?';
/** What is no filler: quotations, code, the name of a program, and a relative clause about a person. */
const legitimate = [
  /\$\w+/g,
  /`[^`]*`/g,
  /"[^"]*"/g,
  /“[^”]*”/g,
  /\]\([^)]*\)/g,
  /\bwho am i\b/gi,
  new RegExp(`\\b${person} who\\b`, 'gi'),
];

const word = new RegExp(`\\b(${Object.keys(fillers).join('|')})\\b`, 'gi');

/** The fillers of one text, in order. */
export function fillersIn(text: string): readonly string[] {
  const rest = legitimate.reduce((left, pattern) => left.replaceAll(pattern, ' '), text);
  return [...rest.matchAll(word)].map(([found]) => found.toLowerCase());
}

/** Strings, templates and regular expressions are matched to be skipped: a `//` in one of them begins no comment. */
const token =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`|(?<=[=(,:[!&|?]\s*)\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//g;

export interface Passage {
  readonly line: number;
  readonly text: string;
}

const at = (source: string, index: number): number => source.slice(0, index).split('\n').length;

export const commentsOf = (source: string): readonly Passage[] =>
  [...source.matchAll(token)]
    .filter(([text]) => text.startsWith('/*') || text.startsWith('//'))
    .map(({ 0: text, index }) => ({ line: at(source, index), text }));

const title =
  /\b(?:test|it|describe)(?:\.[a-z]+)*\(\s*(?:'((?:[^'\\\n]|\\.)*)'|`([^`]*)`)|^\]\)\(\s*'((?:[^'\\\n]|\\.)*)'/gm;

export const titlesOf = (source: string): readonly Passage[] =>
  [...source.matchAll(title)].map((found) => ({
    line: at(source, found.index),
    text: found[1] ?? found[2] ?? found[3] ?? '',
  }));

/** Paragraphs without code blocks, headings included. */
export const passagesOf = (page: string): readonly Passage[] =>
  page
    .replaceAll(/^```[\s\S]*?^```$/gm, (block) => block.replaceAll(/[^\n]/g, ''))
    .split('\n')
    .map((text, index) => ({ line: index + 1, text }));

const wrapColumn = 150;
/** Prose alone: tables, lists, quotations and indented code are measured by the reader. */
const isProse = (paragraph: string): boolean => !/^(?:\||#|\s{4}|[-*>] |\d+\. |<)/.test(paragraph);

/** Lines that a paragraph takes when wrapped. */
function wrappedLines(paragraph: string): number {
  let lines = 1;
  let column = 0;
  for (const one of paragraph.split(/\s+/)) {
    if (column > 0 && column + 1 + one.length > wrapColumn) {
      lines += 1;
      column = 0;
    }
    column += (column > 0 ? 1 : 0) + one.length;
  }
  return lines;
}

/** Beginnings of the paragraphs that take more than `most` lines of 150 columns. */
export const longParagraphs = (page: string, most: number): readonly string[] =>
  page
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .split(/\n\s*\n/)
    .filter((paragraph) => isProse(paragraph) && wrappedLines(paragraph.trim()) > most)
    .map((paragraph) => `${paragraph.trim().slice(0, 60)}…`);
