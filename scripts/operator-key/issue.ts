/** One more operator key, written straight into the table of a deployed broker: write access to that table is control of the broker anyway. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { jitteredBackoff } from '#control/adapters/dynamodb/backoff.ts';
import { createDynamoDbStore } from '#control/adapters/dynamodb/dynamodb-store.ts';
import { createControl } from '#control/control.ts';
import { silentChannel } from '#control/ports/agent-channel.ts';
import { createJsonLog } from '#functions/runtime/json-log.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { systemClock } from '#shared/ports/system-clock.ts';

export interface OperatorKeyOptions {
  readonly client: DynamoDBClient;
  readonly tableName: string;
}

/** The secret: only its hash is stored. */
export async function issueOperatorKey({ client, tableName }: OperatorKeyOptions): Promise<string> {
  const clock = systemClock;
  const store = createDynamoDbStore({ client, tableName, clock, backoff: jitteredBackoff(clock, Math.random) });
  const control = createControl({
    store,
    channel: silentChannel,
    clock,
    ids: createSystemIds(() => clock.now()),
    log: createJsonLog('warn'),
    // Issuing a key needs no address.
    broker: () => ({ url: 'https://unused.invalid' }),
  });
  try {
    return await control.tenants.operators.issue({ from: 'operator-key script', requestId: 'operator-key' });
  } finally {
    await store.close();
  }
}
