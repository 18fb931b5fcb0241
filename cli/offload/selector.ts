/** `--selector` of offload: repeated options are ORed, requirements inside one are ANDed, as node selector terms have it. */
import type { NodeSelector } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Term = NodeSelector['nodeSelectorTerms'][number];
type Requirement = NonNullable<Term['matchExpressions']>[number];

const key = '[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?';
const setBased = new RegExp(`^(?<key>${key})\\s+(?<op>in|notin)\\s*\\((?<values>[^()]*)\\)$`);
const equality = new RegExp(`^(?<key>${key})\\s*(?<op>==|=|!=)\\s*(?<value>[-A-Za-z0-9_.]*)$`);
const existence = new RegExp(`^(?<not>!?)\\s*(?<key>${key})$`);

/** Commas outside of parentheses. */
const split = (text: string): string[] => text.split(/,(?![^(]*\))/).map((part) => part.trim());

function requirement(text: string): Requirement | undefined {
  const set = setBased.exec(text)?.groups;
  if (set) {
    const values = (set.values ?? '').split(',').map((value) => value.trim());
    return { key: set.key ?? '', operator: set.op === 'in' ? 'In' : 'NotIn', values };
  }
  const equal = equality.exec(text)?.groups;
  if (equal) {
    return { key: equal.key ?? '', operator: equal.op === '!=' ? 'NotIn' : 'In', values: [equal.value ?? ''] };
  }
  const exists = existence.exec(text)?.groups;
  if (exists) return { key: exists.key ?? '', operator: exists.not === '!' ? 'DoesNotExist' : 'Exists' };
  return undefined;
}

/** Undefined without options: every provider. */
export function clusterSelector(selectors: readonly string[]): NodeSelector | undefined {
  if (selectors.length === 0) return undefined;
  return {
    nodeSelectorTerms: selectors.map((text) => ({
      matchExpressions: split(text).map((part) => {
        const parsed = requirement(part);
        if (parsed !== undefined) return parsed;
        throw new AppError(
          'invalid_input',
          `the selector ${JSON.stringify(text)} has the requirement ${JSON.stringify(part)}, accepted are key=value, key!=value, key, !key, key in (a,b) and key notin (a,b)`,
          { detail: { field: 'selector', value: text } },
        );
      }),
    })),
  };
}
