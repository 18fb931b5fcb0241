/** What a directory entry is, and what of it everybody sees: all of it, because nothing else is ever put in. */
import { parseResources } from '#shared/domain/quantity.ts';
import { checkClasses, refuse } from '../invitations/invitation.ts';
import type { Resources } from '../model/peering.ts';
import { checkCluster } from '../peerings/terms.ts';

export interface NewEntry {
  readonly cluster: string;
  readonly region?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Default `default`. */
  readonly classes?: readonly string[];
  /** A hint, in the owner's words: nobody checks it against the cluster. */
  readonly capacity?: Resources;
  readonly description?: string;
}

/** Exactly this is public. */
export interface DirectoryEntry {
  readonly tenant: string;
  readonly cluster: string;
  readonly region: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly classes: readonly string[];
  readonly capacity: Resources;
  readonly description: string;
  readonly publishedAt: number;
  readonly updatedAt: number;
}

export const publicFields = [
  'tenant',
  'cluster',
  'region',
  'labels',
  'classes',
  'capacity',
  'description',
  'publishedAt',
  'updatedAt',
] as const satisfies readonly (keyof DirectoryEntry)[];

const maxLabels = 32;
const labelKey = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;
const labelValue = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/;
const regionName = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/;

export function checkLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(labels);
  if (entries.length > maxLabels) refuse('labels', entries.length, `at most ${maxLabels} labels`);
  for (const [name, value] of entries) {
    if (!labelKey.test(name)) refuse(`labels.${name}`, name, 'a Kubernetes label name');
    if (!labelValue.test(value)) refuse(`labels.${name}`, value, 'a Kubernetes label value of at most 63 characters');
  }
  return Object.fromEntries(entries);
}

export function checkEntry(input: NewEntry): Omit<DirectoryEntry, 'tenant' | 'publishedAt' | 'updatedAt'> {
  const { cluster, region = '', labels = {}, classes = ['default'], capacity = {}, description = '' } = input;
  checkCluster(cluster, 'cluster');
  if (!regionName.test(region)) refuse('region', region, 'at most 63 letters, digits, -, _ and .');
  if (description.length > 500) refuse('description', description, 'at most 500 characters');
  return {
    cluster,
    region,
    labels: checkLabels(labels),
    classes: checkClasses(classes),
    capacity: parseResources(capacity, 'capacity'),
    description,
  };
}

/** Every label of `wanted` has that very value. */
export const hasLabels = (
  labels: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): boolean => Object.entries(wanted).every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
