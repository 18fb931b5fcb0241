import https from 'node:https';
import { expect, test } from 'vitest';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type MayCall, mayCall } from './callers.ts';
import { serveAdmission } from './server.ts';

const own = new Set(['127.0.0.1', '10.0.0.7', '10.244.0.1', 'fd00::7']);

test.each([['10.0.0.7'], ['::ffff:10.0.0.7'], ['127.0.0.1'], ['fd00::7']])(
  'where the API server stands on the node, webhooks are called from its own address %s',
  (address) => {
    expect(mayCall(address, ['10.0.0.7'], own)).toBe(true);
  },
);

test.each([
  ['a pod', '10.244.0.9'],
  ['another host', '::ffff:10.0.0.8'],
  ['a caller without an address', undefined],
])('where the API server stands on the node, %s does not reach the webhooks', (_, address) => {
  expect(mayCall(address, ['10.0.0.7'], own)).toBe(false);
});

test('where an API server runs elsewhere, or is not known yet, every address may reach the webhooks', () => {
  expect(mayCall('10.0.0.8', ['10.0.0.7', '10.0.0.9'], own)).toBe(true);
  expect(mayCall('10.0.0.8', [], own)).toBe(true);
});

test.each([
  ['served', true, 404],
  ['ended before TLS begins', false, undefined],
])('the connection of a caller is %s', async (_, allowed, expected) => {
  const asked: (string | undefined)[] = [];
  const certificate = issueServingCertificate(['localhost'], Date.now());
  const remember: MayCall = (address) => {
    asked.push(address);
    return allowed;
  };
  const host = '127.0.0.1';
  const options = { routes: new Map(), certificate, secretPath: 'x', log: silentLog, host, port: 0, mayCall: remember };
  const server = await serveAdmission(options);
  const target = { host, port: server.port, servername: 'localhost', ca: certificate.certificate, agent: false };
  try {
    const status = await new Promise<number | undefined>((resolve) => {
      const request = https.get(target, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      request.once('error', () => resolve(undefined));
    });
    expect(status).toBe(expected);
    expect(asked).toEqual([host]);
  } finally {
    await server.close();
  }
});
