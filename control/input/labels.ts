/** What labels of tenants and clusters may be. */
import { refuse } from './checks.ts';

const maxLabels = 32;

const labelKey = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;

const labelValue = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/;

export function checkLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(labels);
  if (entries.length > maxLabels) refuse('labels', entries.length, `at most ${maxLabels} labels`);
  for (const [name, value] of entries) {
    if (!labelKey.test(name)) refuse(`labels.${name}`, name, 'a Kubernetes label name');
    if (!labelValue.test(value)) refuse(`labels.${name}`, value, 'a Kubernetes label value of at most 63 characters');
  }
  return Object.fromEntries(entries);
}

/** Every label of `wanted` has that very value. */
export const hasLabels = (
  labels: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): boolean => Object.entries(wanted).every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
