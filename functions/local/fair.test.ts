/** Turns over the tenants, with the functions of the REST API behind a real server. */
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { httpFunctions } from '#functions/routes.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { type ApiFixture, createApiFixture } from '#functions/testing/api-fixture.ts';
import { createRouter } from './gateway-router.ts';
import { createHttpGateway } from './http-gateway.ts';
import { createStartTurns } from './start-turns.ts';

let fixture: ApiFixture;
let server: Server;
const agent = new Agent({ keepAlive: true });
/** By the tenant of their API key, as they reached the server, and as their functions began. */
let arrived: string[] = [];
let begun: string[] = [];
let onArrival: (count: number) => void = () => undefined;
/** No turn is asked for before. */
let open: Promise<void> = Promise.resolve();
const tenantOf = (headers: Readonly<Record<string, unknown>>): string =>
  /isk_([a-z]+)_/.exec(String(headers.authorization))?.[1] ?? 'nobody';

beforeAll(async () => {
  fixture = await createApiFixture();
  let now = 0;
  // Each request takes longer than an iteration of the event loop has for requests.
  const turns = createStartTurns(() => {
    now += 50;
    return now;
  });
  const gateway = createHttpGateway(
    fixture.composition,
    createRouter(
      httpFunctions.map((run) =>
        Object.assign(
          (...[event, context]: Parameters<typeof run>) => {
            begun.push(tenantOf(event.headers));
            return run(event, context);
          },
          { route: run.route },
        ),
      ),
    ),
    createSystemIds(() => Date.now()),
    {
      turns: {
        async take(owner) {
          await open;
          return turns.take(owner);
        },
      },
    },
  );
  server = createServer((message: IncomingMessage, response) => {
    arrived.push(tenantOf(message.headers));
    gateway(message, response);
    onArrival(arrived.length);
  });
  // However long a test takes, no connection ends between two requests of it.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  agent.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const ask = (key: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const { port } = server.address() as AddressInfo;
    const headers = { authorization: `Bearer ${key}` };
    const sent = request({ port, path: '/v1/tenant', agent, headers }, (response) => {
      response.on('end', () => resolve(response.statusCode ?? 0)).resume();
    });
    sent.on('error', reject).end();
  });

const many = 200;

/** `first` is asked with that often, then once with `second`, and all of it arrives before any begins. How many functions began before that one. */
async function placeAmong(first: string, second: string): Promise<number> {
  [arrived, begun] = [[], []];
  let last: Promise<number> | undefined;
  open = new Promise((resolve) => {
    onArrival = (count) => {
      if (count === many) last = ask(second);
      if (count > many) resolve();
    };
  });
  await Promise.all(Array.from({ length: many }, () => ask(first)));
  await last;
  expect(begun).toHaveLength(many + 1);
  return begun.indexOf(tenantOf({ authorization: `Bearer ${second}` }));
}

test('a request is begun before most of those of another tenant that came before it', async () => {
  const [busy, polite] = [await fixture.tenant('busy'), await fixture.tenant('polite')];
  expect([await ask(busy), await ask(polite)]).toEqual([200, 200]);
  expect(await placeAmong(busy, polite)).toBeLessThan(5);
});

test('and before most of those with credentials that are not known, which have turns over their addresses', async () => {
  const polite = await fixture.tenant('known');
  expect(await ask(polite)).toBe(200);
  expect(await placeAmong('isk_stranger_nonsense', polite)).toBeLessThan(5);
});
