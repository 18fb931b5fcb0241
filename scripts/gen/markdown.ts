/** Pieces of Markdown that the generated pages share. */

/** Cells may hold anything but line breaks; pipes are escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

export const code = (text: string): string => `\`${text}\``;

export const generatedNote = (source: string): string =>
  `<!-- Written by \`npm run gen\` from ${source}; edits are lost. -->`;

/** Paragraphs, separated by empty lines, ending with one line break. */
export const page = (...blocks: readonly string[]): string =>
  `${blocks.filter((block) => block !== '').join('\n\n')}\n`;
