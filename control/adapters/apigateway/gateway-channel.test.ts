import {
  ApiGatewayManagementApiClient,
  DeleteConnectionCommand,
  GoneException,
  PostToConnectionCommand,
} from '@aws-sdk/client-apigatewaymanagementapi';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { createMemoryStore } from '../memory/memory-store.ts';
import { connectionLifeMs } from './connection-items.ts';
import { createConnectionTable } from './connections.ts';
import { createGatewayChannel } from './gateway-channel.ts';
import { createListenerTable } from './listeners.ts';
import { createSocketGateway } from './socket-gateway.ts';

const mock = mockClient(ApiGatewayManagementApiClient);
beforeEach(() => {
  mock.reset();
  mock.on(PostToConnectionCommand).resolves({});
  mock.on(DeleteConnectionCommand).resolves({});
});

const rome = { tenant: 'acme', clusterId: 'rome' };
const agent = { ...rome, principal: 'cluster/rome', from: '192.0.2.1', requestId: 'rq' };
const gone = new GoneException({ message: 'gone', $metadata: { httpStatusCode: 410 } });

function open() {
  const clock = new ManualClock();
  const stored = { store: createMemoryStore({ clock }), clock };
  const connections = createConnectionTable({ ...stored, listeners: createListenerTable(stored) });
  const client = new ApiGatewayManagementApiClient({ region: 'eu-central-1', endpoint: 'https://example.com/stage' });
  return {
    clock,
    connections,
    channel: createGatewayChannel({ gateway: createSocketGateway(client), connections, log: silentLog }),
  };
}

const posted = () =>
  mock
    .commandCalls(PostToConnectionCommand)
    .map(({ args: [{ input }] }) => [input.ConnectionId, JSON.parse(Buffer.from(input.Data as Uint8Array).toString())]);

describe('ringing', () => {
  test('notifies every connection of the cluster, and no other', async () => {
    const { connections, channel } = open();
    await connections.add('c1', agent);
    await connections.add('c2', agent);
    await connections.add('c3', { ...agent, clusterId: 'milan' });
    await connections.add('c4', { ...agent, tenant: 'globex' });
    channel.ring(rome, 7);
    await channel.settled();
    expect(posted()).toEqual([
      ['c1', { type: 'desired', revision: 7 }],
      ['c2', { type: 'desired', revision: 7 }],
    ]);
  });

  test('forgets a connection that is gone, and still reaches the other', async () => {
    const { connections, channel } = open();
    await connections.add('c1', agent);
    await connections.add('c2', agent);
    mock.on(PostToConnectionCommand, { ConnectionId: 'c1' }).rejects(gone);
    channel.ring(rome, 7);
    await channel.settled();
    expect(await connections.of(rome)).toEqual(['c2']);
    expect(await connections.holderOf('c1')).toBeUndefined();
    expect(posted().map(([id]) => id)).toContain('c2');
  });

  test('keeps a connection when the gateway only throttles, and never throws', async () => {
    const { connections, channel } = open();
    await connections.add('c1', agent);
    const error = Object.assign(new Error('slow down'), { $metadata: { httpStatusCode: 429 } });
    mock.on(PostToConnectionCommand).rejects(error);
    channel.ring(rome, 7);
    await channel.settled();
    expect(await connections.of(rome)).toEqual(['c1']);
  });

  test('several times in one breath says the newest revision once', async () => {
    const { connections, channel } = open();
    await connections.add('c1', agent);
    channel.ring(rome, 7);
    channel.ring(rome, 9);
    channel.ring(rome, 8);
    await channel.settled();
    expect(posted()).toEqual([['c1', { type: 'desired', revision: 9 }]]);
  });

  test('again later says it again', async () => {
    const { connections, channel } = open();
    await connections.add('c1', agent);
    channel.ring(rome, 7);
    await channel.settled();
    channel.ring(rome, 8);
    await channel.settled();
    expect(posted()).toHaveLength(2);
  });
});

describe('a connection', () => {
  test('that is reported open twice is one, and closing it twice does no harm', async () => {
    const { connections } = open();
    await connections.add('c1', agent);
    await connections.add('c1', agent);
    expect(await connections.of(rome)).toEqual(['c1']);
    expect(await connections.holderOf('c1')).toEqual({ agent });
    await connections.remove('c1');
    await connections.remove('c1');
    expect(await connections.of(rome)).toEqual([]);
  });

  test('is forgotten by itself after the two hours that the gateway gives it', async () => {
    const { connections, clock } = open();
    await connections.add('c1', agent);
    clock.advance(connectionLifeMs);
    expect([await connections.of(rome), await connections.holderOf('c1')]).toEqual([[], undefined]);
  });
});

test('hanging up closes every connection of a cluster, those included that are gone', async () => {
  const { connections, channel } = open();
  await connections.add('c1', agent);
  await connections.add('c2', agent);
  mock.on(DeleteConnectionCommand, { ConnectionId: 'c1' }).rejects(gone);
  expect(await channel.hangUp(rome)).toBe(2);
  expect(await connections.of(rome)).toEqual([]);
  expect(mock.commandCalls(DeleteConnectionCommand)).toHaveLength(2);
});
