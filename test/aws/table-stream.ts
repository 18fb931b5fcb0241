/** The table's stream, read as Lambda's poller does: new records once, in order. In DynamoDB Local's plain JSON protocol. */
import type { Attributes } from '#control/adapters/dynamodb/item.ts';
import { fakeRegion } from './dynamodb-local.ts';

export interface StreamRecord {
  readonly eventID: string;
  readonly eventName: string;
  readonly dynamodb: { readonly SequenceNumber: string; readonly NewImage?: Attributes };
}

export interface TableStream {
  /** What came since the last time. */
  next(): Promise<readonly StreamRecord[]>;
}

interface Shard {
  readonly ShardId: string;
}

export function openTableStream(endpoint: string, tableName: string): TableStream {
  async function call<T>(action: string, body: unknown): Promise<T> {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': `DynamoDBStreams_20120810.${action}`,
        authorization: `AWS4-HMAC-SHA256 Credential=local/20260101/${fakeRegion}/dynamodb/aws4_request, SignedHeaders=host, Signature=none`,
      },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${action}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  }

  const iterators = new Map<string, string | undefined>();
  let streamArn: string | undefined;

  return {
    async next() {
      streamArn ??= (
        await call<{ readonly Streams: readonly { readonly StreamArn: string }[] }>('ListStreams', {
          TableName: tableName,
        })
      ).Streams[0]?.StreamArn;
      const { StreamDescription } = await call<{ readonly StreamDescription: { readonly Shards: readonly Shard[] } }>(
        'DescribeStream',
        { StreamArn: streamArn },
      );
      const found: StreamRecord[] = [];
      for (const { ShardId } of StreamDescription.Shards) {
        if (!iterators.has(ShardId)) {
          const { ShardIterator } = await call<{ readonly ShardIterator: string }>('GetShardIterator', {
            StreamArn: streamArn,
            ShardId,
            ShardIteratorType: 'TRIM_HORIZON',
          });
          iterators.set(ShardId, ShardIterator);
        }
        for (;;) {
          const iterator = iterators.get(ShardId);
          if (iterator === undefined) break;
          const { Records, NextShardIterator } = await call<{
            readonly Records: readonly StreamRecord[];
            readonly NextShardIterator?: string;
          }>('GetRecords', { ShardIterator: iterator });
          iterators.set(ShardId, NextShardIterator);
          found.push(...Records);
          if (Records.length === 0) break;
        }
      }
      return found;
    },
  };
}
