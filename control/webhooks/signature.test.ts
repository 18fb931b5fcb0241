import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { countingIds } from '../testing/counting-ids.ts';
import { newWebhookSecret, signatureHeaders } from './signature.ts';

/** From the test vectors of the Standard Webhooks libraries. */
const known = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  at: 1_614_265_330_000,
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};

test('signs as the libraries of Standard Webhooks verify', () => {
  expect(signatureHeaders([known.secret], known)).toEqual({
    'webhook-id': known.id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': known.signature,
  });
});

test('signs once with each secret, the newest first', () => {
  const [newest, oldest] = [newWebhookSecret(countingIds('new')), newWebhookSecret(countingIds('old'))];
  const { 'webhook-signature': both = '' } = signatureHeaders([newest, oldest], known);
  const each = [newest, oldest].map((secret) => signatureHeaders([secret], known)['webhook-signature']);
  expect(both.split(' ')).toEqual(each);
});

test('a secret is whsec_ and 32 bytes in base64', () => {
  const secret = newWebhookSecret(countingIds());
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const key = Buffer.from(secret.slice(6), 'base64');
  expect(key).toHaveLength(32);
  const { 'webhook-signature': signature } = signatureHeaders([secret], known);
  const expected = createHmac('sha256', key).update(`${known.id}.1614265330.${known.body}`).digest('base64');
  expect(signature).toBe(`v1,${expected}`);
});
