/** For functions that serve one tenant at a time: sessions of the function's own role that are tagged with the tenant, which the policy of the role puts into its patterns. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createCalling } from '#control/adapters/aws-targets/signed-call.ts';
import { createTenantSessions, type TenantSessions } from '#control/adapters/aws-targets/tenant-session.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { clientSettings } from './client-settings.ts';
import type { PartDeps } from './cloud.ts';

export function ownRoleSessions({ env, backoff }: PartDeps): TenantSessions {
  // Any client knows the Region and the credentials of this process; this one is in the bundle already.
  const { config } = new DynamoDBClient(clientSettings);
  const { SESSION_ROLE: roleArn, AWS_ENDPOINT_URL_STS: endpoint } = env;
  if (roleArn === undefined) throw new Error('SESSION_ROLE is missing in the environment of this function');
  return createTenantSessions({
    call: createCalling({ now: () => systemClock.now(), ...(endpoint !== undefined && { endpoint }) }),
    roleArn,
    backoff,
    region: () => config.region(),
    credentials: () => config.credentials(),
  });
}
