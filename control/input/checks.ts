/** Checks of what a caller sends: names, classes, clusters, whole numbers. Each refusal names field, value and what is accepted. */
import { AppError } from '#shared/errors/app-error.ts';
import { ClusterId } from '#shared/schema/protocol/agent-protocol.ts';

const maxClasses = 20;

export function refuse(field: string, value: unknown, accepted: string): never {
  throw new AppError('invalid_input', `${field} is ${JSON.stringify(value)}; accepted is ${accepted}`, {
    detail: { field, value, accepted },
  });
}

export const wholeBetween = (value: number, least: number, most: number): boolean =>
  Number.isInteger(value) && value >= least && value <= most;

export function checkClasses(classes: readonly string[]): readonly string[] {
  if (classes.length < 1 || classes.length > maxClasses) refuse('classes', classes, `1 to ${maxClasses} classes`);
  return [...new Set(classes.map((name) => (name === '*' ? name : checkClass(name, 'classes'))))];
}

const className = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

export function checkClass(name: string, field = 'class'): string {
  if (className.test(name)) return name;
  throw new AppError(
    'invalid_input',
    `${field} is ${JSON.stringify(name)}; accepted are 1 to 63 letters, digits, -, _ and .`,
    { detail: { field, value: name } },
  );
}

export function checkCluster(value: string, field: string): void {
  if (ClusterId.safeParse(value).success) return;
  throw new AppError(
    'invalid_input',
    `${field} is ${JSON.stringify(value)}; a cluster ID is a DNS-1123 label of at most 63 characters`,
    { detail: { field, value } },
  );
}
