/** Which labels are wanted: `tier=gold,zone` asks for that value of `tier`, and for any value of `zone`. */

const name = '([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?';
const value = '([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?';
const one = `${name}(=${value})?`;

/** One to 16 requirements, separated by commas. */
export const selectorPattern = new RegExp(`^${one}(,${one}){0,15}$`);

export interface LabelRequirement {
  readonly key: string;
  /** Absent: any. */
  readonly value?: string;
}

/** Of text that `selectorPattern` fits. */
export const parseSelector = (text: string): readonly LabelRequirement[] =>
  text.split(',').map((requirement) => {
    const equals = requirement.indexOf('=');
    return equals < 0
      ? { key: requirement }
      : { key: requirement.slice(0, equals), value: requirement.slice(equals + 1) };
  });

/** All of them must hold. */
export const selects = (
  requirements: readonly LabelRequirement[],
  labels: Readonly<Record<string, string>> = {},
): boolean =>
  requirements.every(
    (wanted) =>
      Object.hasOwn(labels, wanted.key) && (wanted.value === undefined || labels[wanted.key] === wanted.value),
  );
