import {
  ApiGatewayManagementApiClient,
  GoneException,
  PostToConnectionCommand,
} from '@aws-sdk/client-apigatewaymanagementapi';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { createMemoryStore } from '../memory/memory-store.ts';
import { createListenerBell } from './listener-bell.ts';
import { createListenerTable } from './listeners.ts';
import { createSocketGateway, type SocketGateway } from './socket-gateway.ts';

const mock = mockClient(ApiGatewayManagementApiClient);
beforeEach(() => {
  mock.reset();
  mock.on(PostToConnectionCommand).resolves({});
});

const listener = { tenant: 'acme', keyId: 'ak_1' };
const forever = new AbortController().signal;

async function open(ids: readonly string[], mayListen = async () => true) {
  const clock = new ManualClock();
  const listeners = createListenerTable({ store: createMemoryStore({ clock }), clock });
  const client = new ApiGatewayManagementApiClient({ region: 'eu-central-1', endpoint: 'https://example.com/stage' });
  const gateway = createSocketGateway(client);
  for (const id of ids) await listeners.add(id, listener);
  clock.advance(60_000);
  const known = async () => (await listeners.of(['acme'])).map(({ connectionId }) => connectionId);
  return { known, bell: createListenerBell({ gateway, listeners, mayListen, clock, log: silentLog }) };
}

const posted = () => mock.commandCalls(PostToConnectionCommand).map(({ args: [{ input }] }) => input.ConnectionId);

test('a socket that is gone is forgotten, one that the gateway throttles is kept, and the others are told', async () => {
  const { bell, known } = await open(['c1', 'c2', 'c3']);
  mock
    .on(PostToConnectionCommand, { ConnectionId: 'c1' })
    .rejects(new GoneException({ message: '', $metadata: { httpStatusCode: 410 } }));
  mock
    .on(PostToConnectionCommand, { ConnectionId: 'c2' })
    .rejects(Object.assign(new Error('slow down'), { $metadata: { httpStatusCode: 429 } }));
  await bell.tell(['acme', 'acme', 'globex'], forever);
  expect([posted(), await known()]).toEqual([
    ['c1', 'c2', 'c3'],
    ['c2', 'c3'],
  ]);
});

test('a socket that takes nothing is given up, and kept', async () => {
  const clock = new ManualClock();
  const listeners = createListenerTable({ store: createMemoryStore({ clock }), clock });
  for (const id of ['slow', 'quick']) await listeners.add(id, listener);
  const sent: string[] = [];
  const gateway: SocketGateway = {
    close: async () => undefined,
    post: (id, _frame, signal) => {
      if (id === 'quick') sent.push(id);
      return id === 'quick'
        ? Promise.resolve('sent')
        : new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    },
  };
  const bell = createListenerBell({ gateway, listeners, mayListen: async () => true, clock, log: silentLog });
  await bell.tell(['acme'], forever);
  expect(sent).toEqual(['quick']);
  expect(await listeners.of(['acme'])).toHaveLength(2);
});

test('while it cannot be looked up what a key may do, its socket is neither told nor closed', async () => {
  const { bell, known } = await open(['c1'], async () => {
    throw new Error('the table throttles');
  });
  await bell.tell(['acme'], forever);
  expect([posted(), await known()]).toEqual([[], ['c1']]);
});
