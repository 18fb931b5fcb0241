import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { trustProxies } from './proxies.ts';
import { boundUnreadAnswers, mostPipelined, type UnreadAnswersOptions } from './unread-answers.ts';

let server: Server | undefined;
let clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients) client.destroy();
  clients = [];
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
});

/** Each request as the server begins it, with its connection. */
async function serve(answer: (response: ServerResponse, path: string) => void, options: UnreadAnswersOptions = {}) {
  const begun: { readonly path: string; readonly socket: Socket }[] = [];
  server = createServer(
    boundUnreadAnswers((request, response) => {
      const path = request.url ?? '';
      begun.push({ path, socket: request.socket });
      answer(response, path);
    }, options),
  );
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return begun;
}

const asking = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`;

async function client(): Promise<Socket> {
  const { port } = (server as Server).address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  clients.push(socket);
  socket.on('error', () => undefined);
  socket.pause();
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}

/** More than all buffers between the two take. */
const large = Buffer.alloc(32 << 20);

test('requests of one connection are begun one after the other, and answered in their order', async () => {
  let last: ServerResponse | undefined;
  const begun = await serve((response) => {
    last = response;
  });
  const socket = await client();
  let answers = '';
  socket.on('data', (chunk) => {
    answers += chunk.toString();
  });
  socket.resume();
  socket.write(['/1', '/2', '/3'].map((path) => asking(path)).join(''));
  for (const n of [1, 2, 3]) {
    await eventually(`request ${n} has begun`, async () => (begun.length >= n ? true : undefined));
    expect(begun).toHaveLength(n);
    last?.end(`answer ${n}.`);
  }
  await eventually('all answers', async () => (answers.includes('answer 3.') ? true : undefined));
  expect(answers.match(/answer \d/g)).toEqual(['answer 1', 'answer 2', 'answer 3']);
});

test('while a client does not take an answer, nothing of what it asked next is begun', async () => {
  const begun = await serve((response, path) => response.end(path === '/last' ? '' : large));
  const [silent, other] = [await client(), await client()];
  silent.write(Array.from({ length: 8 }, (_, n) => asking(`/${n}`)).join(''));
  await eventually('the first has begun', async () => (begun.length === 1 ? true : undefined));
  other.resume();
  other.write(asking('/other') + asking('/last'));
  await eventually('the other client has both', async () =>
    begun.some(({ path }) => path === '/last') ? true : undefined,
  );
  expect(begun.map(({ path }) => path)).toEqual(['/0', '/other', '/last']);
});

test('a client that pipelines more than the limit is cut off', async () => {
  const begun = await serve(() => undefined);
  const socket = await client();
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.resume();
  socket.write(asking('/').repeat(mostPipelined + 1));
  await closed;
  expect(begun.length).toBeLessThanOrEqual(1);
});

test.each([
  { from: 'one address', b: ['192.0.2.2', '192.0.2.2', '192.0.2.2'] },
  { from: 'addresses of one /64', b: ['2001:db8::1', '2001:db8::2', '2001:db8::3'] },
] as const)(
  'when unread answers hold more than the limit, the client that holds most from $from loses those that wait longest, also behind a proxy',
  async ({ b }) => {
    let now = 0;
    const proxies = trustProxies(['127.0.0.0/8']);
    const begun = await serve((response) => response.end(large), {
      mostUnread: 100 << 20,
      now: () => now,
      clientOf: proxies.clientOf,
    });
    const asks = async (path: string, address: string): Promise<Socket> => {
      (await client()).write(asking(path, `x-forwarded-for: ${address}\r\n`));
      const found = await eventually(`${path} has begun`, async () => begun.find((one) => one.path === path));
      now += 1_000;
      return found.socket;
    };
    const own = [await asks('/a1', '192.0.2.1'), await asks('/b1', b[0]), await asks('/b2', b[1])];
    // Beyond the limit, but b2 may still be about to be read.
    own.push(await asks('/b3', b[2]));
    now += 5_000;
    own.push(await asks('/a2', '192.0.2.1'));
    expect(own.map(({ destroyed }) => destroyed)).toEqual([false, true, false, false, false]);
  },
);
