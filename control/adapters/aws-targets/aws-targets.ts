/** Events into EventBridge buses and SQS queues of tenants, as a role of theirs. */

import { createHash } from 'node:crypto';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { parseTargetArn, type TargetName } from '#shared/domain/event-target-arn.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { EventTargetSender, TargetMessage } from '../../ports/event-target-sender.ts';
import type { SendOutcome } from '../../ports/webhook-sender.ts';
import { sendTimeoutMs } from '../../webhooks/schedule.ts';
import { createAssumedRoles, RoleRefused } from './assumed-role.ts';
import {
  type AwsAnswer,
  type AwsCall,
  type Calling,
  type Credentials,
  createCalling,
  endpointOf,
} from './signed-call.ts';

export interface AwsTargetsOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** Whom roles have to trust. */
  readonly principal: string;
  /** Where roles are assumed: the broker's own Region. */
  readonly region: () => Promise<string>;
  /** Of this broker, fresh each time. */
  readonly credentials: () => Promise<Credentials>;
  /** Instead of AWS. */
  readonly endpoint?: string;
  readonly timeoutMs?: number;
}

/** `source` of entries in buses. */
const targetSource = 'isthmus';
/** Of an entry and of a message; what AWS counts besides the body has room in the difference. */
const maxBodyBytes = 256 * 1024 - 2_048;
const keptText = 300;
/** The same event would be refused again. */
const finalCodes = new Set(['MalformedDetail', 'InvalidArgument', 'InvalidMessageContents', 'InvalidMessageContent']);

export function createAwsTargets(options: AwsTargetsOptions): EventTargetSender {
  const { clock, principal, region, credentials, endpoint, timeoutMs = sendTimeoutMs } = options;
  const call: Calling = createCalling({ now: () => clock.now(), ...(endpoint !== undefined && { endpoint }) });
  const roles = createAssumedRoles({ call, clock, region, principal, credentials });

  return {
    principal,
    async send(message, signal) {
      const target = parseTargetArn(message.arn);
      if (!target) return { error: 'it points at no bus and no queue', final: true };
      const bytes = Buffer.byteLength(message.body);
      if (bytes > maxBodyBytes) {
        return { error: `the event has ${bytes} bytes; AWS takes ${maxBodyBytes} at most`, final: true };
      }
      const deadline = AbortSignal.timeout(timeoutMs);
      const both = signal ? abortsWith(signal, deadline) : deadline;
      try {
        const session = await roles.sessionFor(message, target, both);
        const answer = await call({ ...requestOf(message, target), credentials: session }, both);
        return target.type === 'sqs' ? queueOutcome(answer) : busOutcome(answer);
      } catch (error) {
        signal?.throwIfAborted();
        if (deadline.aborted) return { error: `no answer within ${timeoutMs / 1_000} s` };
        if (error instanceof RoleRefused) return { error: error.message };
        return { error: plain(messageOf(error)) };
      }
    },
  };
}

function requestOf(message: TargetMessage, target: TargetName): Omit<AwsCall, 'credentials'> {
  const { region, partition } = target;
  return target.type === 'sqs'
    ? { service: 'sqs', region, partition, target: 'AmazonSQS.SendMessage', body: queueMessage(message, target) }
    : { service: 'events', region, partition, target: 'AWSEvents.PutEvents', body: busEntry(message) };
}

/** One entry a call: what becomes of it is what becomes of the delivery. */
const busEntry = ({ arn, event, body }: TargetMessage): string =>
  JSON.stringify({
    Entries: [
      {
        EventBusName: arn,
        Source: targetSource,
        DetailType: event.type,
        Detail: body,
        Time: Math.floor(event.at / 1_000),
      },
    ],
  });

const text = (StringValue: string) => ({ DataType: 'String', StringValue });

/** What SQS takes for the group of a message. */
const groupPattern = /^[A-Za-z0-9!"#$%&'()*+,\-./:;<=>?@[\\\]^_`{|}~]{1,128}$/;

function queueMessage({ event, body }: TargetMessage, target: TargetName): string {
  const { account, name } = target;
  const group = groupPattern.test(event.subject)
    ? event.subject
    : createHash('sha256').update(event.subject).digest('hex');
  return JSON.stringify({
    QueueUrl: `${endpointOf({ service: 'sqs', ...target })}/${account}/${name}`,
    MessageBody: body,
    MessageAttributes: {
      'content-type': text('application/cloudevents+json; charset=utf-8'),
      id: text(event.id),
      type: text(event.type),
      subject: text(event.subject),
    },
    // Of one subject in one group; the same event twice within five minutes is one message.
    ...(name.endsWith('.fifo') && { MessageGroupId: group, MessageDeduplicationId: event.id }),
  });
}

interface PutEventsAnswer {
  readonly FailedEntryCount?: number;
  readonly Entries?: readonly {
    readonly EventId?: string;
    readonly ErrorCode?: string;
    readonly ErrorMessage?: string;
  }[];
}

/** PutEvents answers 200 also when it took nothing. */
function busOutcome(answer: AwsAnswer): SendOutcome {
  const body = jsonOf<PutEventsAnswer>(answer);
  if (answer.status !== 200 || body === undefined) return refused(answer);
  const { EventId, ErrorCode = 'no event id', ErrorMessage = '' } = body.Entries?.[0] ?? {};
  if (EventId !== undefined && (body.FailedEntryCount ?? 0) === 0) return { status: 200, text: EventId };
  return failure(ErrorCode, ErrorMessage);
}

function queueOutcome(answer: AwsAnswer): SendOutcome {
  const id = answer.status === 200 ? jsonOf<{ readonly MessageId?: string }>(answer)?.MessageId : undefined;
  return id === undefined ? refused(answer) : { status: 200, text: id };
}

interface Refusal {
  readonly __type?: string;
  readonly message?: string;
  readonly Message?: string;
}

/** The JSON protocols name an error by its type, with or without a namespace before it. */
function refused(answer: AwsAnswer): SendOutcome {
  const { __type = `status ${answer.status}`, message, Message } = jsonOf<Refusal>(answer) ?? {};
  return failure(__type.slice(__type.lastIndexOf('#') + 1), message ?? Message ?? '');
}

const failure = (code: string, words: string): SendOutcome => ({
  error: plain(words === '' ? code : `${code}: ${words}`),
  ...(finalCodes.has(code) && { final: true as const }),
});

const plain = (words: string): string => words.replaceAll(/[\p{Cc}\p{Cs}\ufffd]/gu, ' ').slice(0, keptText);

function jsonOf<T>({ text: content }: AwsAnswer): T | undefined {
  try {
    const value: unknown = JSON.parse(content);
    return typeof value === 'object' && value !== null ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}
