/** Pieces of nft text. */

export const set = (elements: readonly (string | number)[]): string => `{ ${elements.join(', ')} }`;

/** 1:1 translation of ranges of equal length, host bits kept. */
export const prefixMap = (pairs: readonly (readonly [string, string])[]): string =>
  `{ ${pairs.map(([from, to]) => `${from} : ${to}`).join(', ')} }`;

export interface Chain {
  readonly name: string;
  /** `type … hook … priority …` */
  readonly base: string;
  readonly policy?: 'accept' | 'drop';
  /** Empty ones are left out. */
  readonly rules: readonly string[];
}

/** A chain without rules is left out, too, unless its policy does something. */
export const chains = (list: readonly Chain[]): string =>
  list
    .map(({ name, base, policy = 'accept', rules }) => ({ name, base, policy, rules: rules.filter((r) => r !== '') }))
    .filter(({ policy, rules }) => rules.length > 0 || policy === 'drop')
    .map(
      ({ name, base, policy, rules }) =>
        `chain ${name} {\n  ${base}; policy ${policy};\n${rules.map((rule) => `  ${rule}\n`).join('')}}\n`,
    )
    .join('');
