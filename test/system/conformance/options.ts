/** What `npm run conformance` takes. */
import { parseArgs } from 'node:util';
import { AppError } from '#shared/errors/app-error.ts';
import { type Place, places } from './storage/driver.ts';
import { type Group, groups, type Share } from './suite.ts';

export interface Options {
  readonly groups: readonly Group[];
  /** The share of virtual nodes that all of the groups want. */
  readonly virtual: Share;
  /** Kubernetes' suites for the driver of a class instead of groups, and where their pods and volumes are. */
  readonly storage: Place | undefined;
  readonly only: readonly string[];
  readonly keep: boolean;
  readonly list: boolean;
  /** Specs without an outcome in docs/conformance.md only, and the page gets theirs. */
  readonly resume: boolean;
  /** No further piece begins after so many minutes. */
  readonly minutes: number;
  /** Writes the table into docs/conformance.md; with `list`, the reasons of the rows that it has. */
  readonly writes: boolean;
}

const isPlace = (name: string): name is Place => (places as readonly string[]).includes(name);
const isGroup = (name: string): name is Group => name in groups;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      group: { type: 'string', multiple: true },
      storage: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      keep: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      resume: { type: 'boolean', default: false },
      minutes: { type: 'string' },
      write: { type: 'boolean', default: false },
    },
  });
  const { group = ['node'], storage, only, keep, list, resume } = values;
  if (storage !== undefined && !isPlace(storage))
    throw new AppError('invalid_input', `--storage is ${storage}: ${places.join(', ')} are accepted`);
  if (storage !== undefined && values.group !== undefined)
    throw new AppError('invalid_input', '--storage and --group were given: one of them is accepted');
  const unknown = group.find((name) => !isGroup(name));
  if (unknown !== undefined)
    throw new AppError('invalid_input', `--group is ${unknown}: ${Object.keys(groups).join(', ')} are accepted`);
  const wanted = group.filter(isGroup);
  const [virtual = 'all', other] = [...new Set(wanted.map((name) => groups[name].virtual))];
  if (other !== undefined)
    throw new AppError('invalid_input', `--group is ${wanted.join(', ')}: groups of one table are accepted`);
  const minutes = values.minutes === undefined ? Number.POSITIVE_INFINITY : Number(values.minutes);
  if (!(minutes > 0))
    throw new AppError('invalid_input', `--minutes is ${values.minutes}: a number above 0 is accepted`);
  if (values.minutes !== undefined && (!resume || list))
    throw new AppError(
      'invalid_input',
      '--minutes is accepted with --resume, which runs what was left, and not with --list',
    );
  return { groups: wanted, virtual, storage, only, keep, list, resume, minutes, writes: values.write || resume };
}
