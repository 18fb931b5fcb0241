/** Event targets of a broker in one process: with the AWS identity of the process, by the usual chain of credentials. */
import type { EventTargetSender } from '#control/ports/event-target-sender.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';

const principalPattern =
  /^arn:aws(-us-gov|-cn)?:(iam|sts)::[0-9]{12}:(root|(user|role|assumed-role)\/[\w+=,.@/-]{1,200})$/;

/** `principal`: what tenants name in the trust policies of their roles. Also reads `AWS_REGION` and, for tests of the operator, `AWS_ENDPOINT_URL`. */
export async function openAwsTargets(principal: string, clock: Pick<Clock, 'now'>): Promise<EventTargetSender> {
  if (!principalPattern.test(principal)) {
    const accepted = 'arn:aws:iam::ACCOUNT:root, arn:aws:iam::ACCOUNT:role/NAME or arn:aws:iam::ACCOUNT:user/NAME';
    throw new AppError(
      'invalid_input',
      `--aws-principal is ${JSON.stringify(principal)}; accepted is the ARN of the identity that this process has at AWS: ${accepted}`,
      { detail: { field: 'awsPrincipal', value: principal, accepted } },
    );
  }
  // Loaded late: a broker without event targets needs nothing of AWS.
  const [{ EventBridgeClient }, { createAwsTargets }] = await Promise.all([
    import('@aws-sdk/client-eventbridge'),
    import('#control/adapters/aws-targets/aws-targets.ts'),
  ]);
  // For the Region and the credentials that every client finds by itself.
  const { config } = new EventBridgeClient({});
  const endpoint = process.env.AWS_ENDPOINT_URL;
  return createAwsTargets({
    clock,
    principal,
    region: () => config.region(),
    credentials: () => config.credentials(),
    ...(endpoint !== undefined && { endpoint }),
  });
}
