/** From where the API server calls the webhooks: what was asked for, beside what is installed. Pure. */
import type { NodeProcess } from '#shared/domain/network-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Cidr } from '#shared/schema/definition/addresses.ts';

/** Fails with `invalid_input` for what is no range, and where no NetworkPolicy holds. */
export function settleCallers(
  asked: readonly string[] | undefined,
  installed: readonly string[],
  nodeProcess: NodeProcess,
): string[] {
  const field = 'webhook-callers';
  const given = asked ?? [];
  const wrong = given.find((range) => !Cidr.safeParse(range).success);
  if (wrong !== undefined)
    throw new AppError(
      'invalid_input',
      `--${field} is ${JSON.stringify(wrong)}, accepted is a range, 192.0.2.0/24 say`,
      {
        detail: { field, value: wrong },
      },
    );
  const all = [...new Set([...installed, ...given])].sort();
  if (nodeProcess === 'own') return all;
  if (given.length === 0) return [];
  throw new AppError(
    'invalid_input',
    `--${field} is ${given.join(', ')}, but the agent does the work of the node, in its network, where no NetworkPolicy holds`,
    { detail: { field, value: given.join(), remedy: 'add --node-process own, or leave the ranges out' } },
  );
}
