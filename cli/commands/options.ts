/** Options and arguments that several commands share, parsed once into what the commands work with. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '#cli/output/duration.ts';
import { formats } from '#cli/output/print.ts';
import { tryParseQuantity } from '#shared/domain/quantity.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ClusterId } from '#shared/schema/protocol/agent-protocol.ts';

export const outputOption = (): Option =>
  new Option('-o, --output <format>', 'output format').choices([...formats]).default('table');

/** Of commands that print one thing and not a list. */
export const reportOption = (): Option =>
  new Option('-o, --output <format>', 'output format').choices(['table', 'json', 'yaml']).default('table');

export const timeoutOption = (preset: string): Option =>
  new Option('--timeout <duration>', 'how long to wait, for example 90s or 5m')
    .default(preset)
    .argParser((text: string) => {
      if (parseDuration(text) === undefined)
        throw new InvalidArgumentError('Accepted are durations like 30s, 5m or 1h.');
      return text;
    });

export const dryRunOption = (): Option =>
  new Option('--dry-run', 'print what is in the cluster and what would happen to it, and change nothing');

/** Of commands that make an object. */
export const manifestOption = (): Option =>
  new Option('-o, --output <format>', 'print the object that would be made, and change nothing').choices([
    'yaml',
    'json',
  ]);

export const waitEventsOption = (): Option =>
  new Option('-o, --output <format>', 'with --wait: print each change as one line of JSON').choices(['json']);

/** Of a command with `waitEventsOption`: without --wait there are no changes to print. */
export function wantsEvents({ wait, output }: { readonly wait?: boolean; readonly output?: 'json' }): boolean {
  if (output === undefined || wait === true) return output !== undefined;
  throw new AppError('fields_conflict', '--output prints what happens while --wait waits, and --wait is not given', {
    detail: { field: 'output', value: output, remedy: 'add --wait, or leave --output out' },
  });
}

/** Of a value that `timeoutOption` let through. */
export const timeoutMsOf = (options: { readonly timeout: string }): number => parseDuration(options.timeout) ?? 0;

export function clusterName(text: string): string {
  const parsed = ClusterId.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError(`A cluster name ${parsed.error.issues[0]?.message ?? 'must be a DNS-1123 label'}.`);
}

export function quantity(text: string): string {
  if (tryParseQuantity(text) !== undefined) return text;
  throw new InvalidArgumentError('Accepted are Kubernetes quantities like 2, 500m or 4Gi.');
}

/** Collects repeated `key=quantity`. */
export function extraResource(text: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const equals = text.lastIndexOf('=');
  if (equals <= 0) throw new InvalidArgumentError('Accepted is NAME=QUANTITY, for example nvidia.com/gpu=1.');
  return { ...before, [text.slice(0, equals)]: quantity(text.slice(equals + 1)) };
}

/** `a=b,c=d` */
export function labelList(text: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = text.split(',').map((pair) => {
    const equals = pair.indexOf('=');
    if (equals <= 0) throw new InvalidArgumentError('Accepted is KEY=VALUE, more than one separated by commas.');
    return [pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()] as const;
  });
  return { ...before, ...Object.fromEntries(pairs) };
}

export function positiveInt(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('Accepted are whole numbers from 1.');
}

export function sharePercent(text: string): number {
  const value = Number(text);
  if (/^[0-9]+$/.test(text) && value <= 10_000) return value;
  throw new InvalidArgumentError('Accepted are whole numbers from 0 to 10000.');
}

/** Collects a repeated option. */
export const collect = (text: string, before: readonly string[]): string[] => [...before, text];

/** Of time that something lives, in whole seconds. */
export function lifetime(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms < 1_000) throw new InvalidArgumentError('Accepted are durations like 12h or 30d.');
  return Math.round(ms / 1_000);
}

export interface ResourceOptions {
  readonly cpu?: string;
  readonly memory?: string;
  readonly pods?: string;
  readonly resource: Record<string, string>;
}

/** The same four options wherever resources are named; `purpose` says what for. */
export const resourceOptions = (command: Command, purpose: string): Command =>
  command
    .option('--cpu <quantity>', `CPU ${purpose}, for example 2 or 500m`, quantity)
    .option('--memory <quantity>', `memory ${purpose}, for example 4Gi`, quantity)
    .option('--pods <quantity>', `number of pods ${purpose}`, quantity)
    .option('--resource <name=quantity>', `another resource ${purpose}; may be repeated`, extraResource, {});

export const askedResources = ({ cpu, memory, pods, resource }: ResourceOptions): Record<string, string> => ({
  ...resource,
  ...(cpu !== undefined && { cpu }),
  ...(memory !== undefined && { memory }),
  ...(pods !== undefined && { pods }),
});
