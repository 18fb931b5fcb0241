/** Webhooks and event targets of the hosted broker, by the deployed bundles: sealed with the keyring of Secrets Manager, posted over TLS or put into a queue, retried when the sweep says so. */
import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createControl } from '#control/control.ts';
import { silentChannel } from '#control/ports/agent-channel.ts';
import { servingCertificates } from '#functions/local/certificates.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { boxSecret, brokerUrl, type Cloud, startCloud } from './cloud.ts';
import { answerOf } from './lambda-agent.ts';
import { httpEvent, scheduledEvent } from './platform-events.ts';

const functions = [
  'api-no-route',
  'api-join-tokens-create',
  'api-webhooks-create',
  'api-webhooks-change',
  'api-webhooks-rotate',
  'api-webhooks-test',
  'api-webhooks-deliveries-list',
  'api-event-targets-create',
  'api-event-targets-deliveries-list',
  'events-dispatch',
  'events-webhooks',
  'schedule-sweep',
];
const tenant = 'acme';

interface Received {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

let cloud: Cloud;
let apiKey = '';
let dir = '';
let receiver: Server;
let url = '';
let status = 200;
const received: Received[] = [];

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-cloud-webhooks-'));
  const tls = await servingCertificates(dir, ['localhost'], Date.now());
  const ca = path.join(dir, 'trusted.pem');
  await writeFile(ca, tls.caPem);
  receiver = createServer({ cert: tls.certPem, key: tls.keyPem }, (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      received.push({ headers: request.headers as Record<string, string>, body });
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  url = `https://localhost:${(receiver.address() as AddressInfo).port}/hook`;
  cloud = await startCloud(functions, { PRIVATE_WEBHOOKS: 'true', NODE_EXTRA_CA_CERTS: ca });
  const control = createControl({
    store: cloud.store(),
    channel: silentChannel,
    clock: systemClock,
    ids: createSystemIds(() => systemClock.now()),
    log: silentLog,
    broker: () => ({ url: brokerUrl }),
  });
  apiKey = (await control.tenants.bootstrap(tenant, { from: 'deployment', requestId: 'start' }))?.secret ?? '';
});
afterAll(async () => {
  receiver.closeAllConnections();
  receiver.close();
  await cloud.stop();
  await rm(dir, { recursive: true, force: true });
});

interface Call {
  readonly body?: unknown;
  readonly webhook?: string;
}

async function rest<T>(name: string, method: string, at: string, { body, webhook }: Call = {}) {
  const event = httpEvent({
    method,
    path: at,
    authorization: `Bearer ${apiKey}`,
    ...(webhook !== undefined && { pathParameters: { webhook } }),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return answerOf<T>(await cloud.invoke(name, event));
}

interface Issued {
  readonly webhook: { readonly id: string };
  readonly secret: string;
}

const made = async (types: readonly string[]): Promise<Issued> => {
  const { status: answered, body } = await rest<Issued>('api-webhooks-create', 'POST', '/v1/webhooks', {
    body: { url, types },
  });
  expect(answered).toBe(201);
  return body;
};

const happen = (cluster: string) => rest('api-join-tokens-create', 'POST', '/v1/join-tokens', { body: { cluster } });

const deliveriesOf = async (webhook: string) => {
  const at = `/v1/webhooks/${webhook}/deliveries`;
  const { body } = await rest<{ items: { state: string; attempts: number; type: string }[] }>(
    'api-webhooks-deliveries-list',
    'GET',
    at,
    { webhook },
  );
  return body.items;
};

function isSignedWith(secret: string, { headers, body }: Received): boolean {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const mac = createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'))
    .update(signed)
    .digest('base64');
  return (headers['webhook-signature'] ?? '').split(' ').includes(`v1,${mac}`);
}

test('what happens reaches a webhook over TLS, signed, once, and the secret stands nowhere in clear', async () => {
  const { webhook, secret } = await made(['cluster.*']);
  received.length = 0;
  await happen('rome');
  expect(await cloud.deliver({ times: 2 })).toContain('events-webhooks');
  expect(received.map((each) => JSON.parse(each.body))).toMatchObject([
    { type: 'dev.isthmus.cluster.join-token-created.v1', subject: 'cluster/rome', source: `${brokerUrl}/tenants/acme` },
  ]);
  expect(isSignedWith(secret, received[0]!)).toBe(true);
  expect(await deliveriesOf(webhook.id)).toMatchObject([{ state: 'delivered', attempts: 1 }]);
  const dump = JSON.stringify(await cloud.dynamodb.dump(cloud.tableName));
  expect([dump.includes(secret), dump.includes(secret.replace('whsec_', ''))]).toEqual([false, false]);
  expect([cloud.log.includes(secret), cloud.log.includes(apiKey)]).toEqual([false, false]);
});

test('a receiver that fails is tried again when the sweep finds that it is time', async () => {
  const { webhook } = await made(['cluster.*']);
  status = 503;
  received.length = 0;
  await happen('milan');
  await cloud.deliver();
  expect(await deliveriesOf(webhook.id)).toMatchObject([{ state: 'pending', attempts: 1 }]);
  status = 200;
  const deadline = performance.now() + 30_000;
  while ((await deliveriesOf(webhook.id))[0]?.state !== 'delivered' && performance.now() < deadline) {
    await cloud.invoke('schedule-sweep', scheduledEvent);
    await cloud.deliver();
  }
  expect(await deliveriesOf(webhook.id)).toMatchObject([{ state: 'delivered', attempts: 2 }]);
});

test('keys are replaced by adding one: what older keys sealed still opens, in containers old and new', async () => {
  const before = await made(['invitation.*']);
  const { k1 } = JSON.parse(await cloud.moto.secret(boxSecret)) as { k1: string };
  await cloud.moto.putSecret(boxSecret, JSON.stringify({ k1, k2: 'n'.repeat(64) }));
  await cloud.cool('api-webhooks-rotate');
  const { body: rotated } = await rest<Issued>(
    'api-webhooks-rotate',
    'POST',
    `/v1/webhooks/${before.webhook.id}/rotate`,
    { webhook: before.webhook.id, body: { overlapSeconds: 3_600 } },
  );
  await cloud.cool('events-webhooks');
  received.length = 0;
  await rest('api-webhooks-test', 'POST', `/v1/webhooks/${before.webhook.id}/test`, { webhook: before.webhook.id });
  await cloud.deliver();
  const tested = received.filter(({ body }) => body.includes('webhook.test'));
  expect(tested).toHaveLength(1);
  expect([isSignedWith(before.secret, tested[0]!), isSignedWith(rotated.secret, tested[0]!)]).toEqual([true, true]);
});

test('a function that only changes a webhook judges its URL without the keyring', async () => {
  const { webhook } = await made(['request.*']);
  const at = `/v1/webhooks/${webhook.id}`;
  const refused = await rest<{ code: string }>('api-webhooks-change', 'PATCH', at, {
    webhook: webhook.id,
    body: { url: 'ftp://example.com/' },
  });
  expect([refused.status, refused.body.code]).toEqual([422, 'invalid_input']);
  const { status: changed } = await rest('api-webhooks-change', 'PATCH', at, {
    webhook: webhook.id,
    body: { url: `${url}?again` },
  });
  expect(changed).toBe(200);
  expect(cloud.log).not.toContain('no right');
});

test('what happens reaches a queue of the tenant, once, by a session that is logged nowhere', async () => {
  const queue = await cloud.moto.queue('acme-events');
  const { status: answered, body: target } = await rest<{ id: string; externalId: string }>(
    'api-event-targets-create',
    'POST',
    '/v1/event-targets',
    {
      body: {
        arn: queue.arn,
        roleArn: 'arn:aws:iam::123456789012:role/isthmus-events-acme',
        types: ['cluster.join-token-created'],
      },
    },
  );
  expect([answered, target.externalId]).toEqual([201, `isthmus/${tenant}`]);
  await happen('turin');
  await cloud.deliver({ times: 2 });
  expect(await queue.take()).toMatchObject([
    {
      type: 'dev.isthmus.cluster.join-token-created.v1',
      subject: 'cluster/turin',
      source: `${brokerUrl}/tenants/acme`,
    },
  ]);
  const event = httpEvent({
    method: 'GET',
    path: `/v1/event-targets/${target.id}/deliveries`,
    authorization: `Bearer ${apiKey}`,
    pathParameters: { target: target.id },
  });
  const { body } = answerOf<{ items: object[] }>(await cloud.invoke('api-event-targets-deliveries-list', event));
  expect(body.items).toMatchObject([{ target: target.id, state: 'delivered', attempts: 1 }]);
  expect(cloud.log).not.toMatch(/ASIA[A-Z0-9]{8}|SecretAccessKey|SessionToken/);
});

test('what no route matches is answered as a problem', async () => {
  const { status: answered, body } = await rest<{ code: string }>('api-no-route', 'GET', '/v1/nothing');
  expect([answered, body.code]).toEqual([404, 'not_found']);
});

test('no function asked for anything in the table that its role does not allow', () => {
  expect(cloud.rights.refused).toEqual([]);
  expect(cloud.rights.allowed.get('events-webhooks')).toBeGreaterThan(0);
});
