/** Which alarms end a release. */
import type { CloudFunction } from '#functions/cloud-function.ts';
import { isAsynchronous, partOf } from './access.ts';

/** Names of `alarmsFor`. Of callers that wait, the errors of their API; of an asynchronous function, what it gave up on. */
export function releaseAlarms(fn: CloudFunction): readonly string[] {
  if (fn.trigger.kind === 'stream') return [`${fn.name}-dead-letters`, 'stream-late'];
  if (isAsynchronous(fn)) return [`${fn.name}-dead-letters`];
  return partOf(fn) === 'channel' ? ['api-errors', 'channel-errors'] : ['api-errors', 'api-slow'];
}
