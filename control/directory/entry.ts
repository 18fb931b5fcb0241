/** What a directory entry is, and what of it everybody sees: all of it, because nothing else is ever put in. */
import { parseResources } from '#shared/domain/quantity.ts';
import { checkClasses, checkCluster, refuse } from '../input/checks.ts';
import { checkLabels } from '../input/labels.ts';
import type { DirectoryEntry, NewEntry } from '../model/directory-entry.ts';

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
const regionName = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/;

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
