/** Consumers that the gate knows by the address from which they come over their link, and that show no token. */
import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { ProxyAuthorizer } from './authorizer.ts';
import { type MaybeToken, mallory, nonce, rome, start, target, token } from './testing/proxy-tokens.ts';

describe('a consumer that needs no token', () => {
  const link = '10.71.0.9';
  const open = () => {
    const news: object[] = [];
    const authorizer = new ProxyAuthorizer({
      clusterId: 'milan',
      targets: new Set([target]),
      nonce,
      clock: new ManualClock(start),
      keysOf: (consumer) => (consumer === 'rome' ? [rome.publicKey] : []),
      consumerAt: (from) => (from.startsWith('10.71.') ? 'rome' : undefined),
      onEvidence: (one) => void news.push(one),
    });
    const ask = async (
      from: string,
      { to = target, method = 'CONNECT', authorization = undefined as MaybeToken } = {},
    ) => authorizer.authorize({ method, target: to, authorization: await authorization, from });
    return { ask, news };
  };

  test('passes from its own addresses and from no other', async () => {
    const { ask, news } = open();
    expect(await ask(link)).toEqual({ pass: true, consumer: 'rome', purpose: 'api-server', byAddress: true });
    expect(await ask('10.72.0.9')).toMatchObject({ pass: false, status: 407 });
    expect(news).toEqual([{ consumer: 'rome', byAddress: true }, { tokenlessFrom: '10.72.0.9' }]);
  });

  test('reaches the API server only, and shows a token for its certificate', async () => {
    const { ask } = open();
    expect(await ask(link, { to: '192.0.2.1:22' })).toMatchObject({ pass: false, status: 403, consumer: 'rome' });
    expect(await ask(link, { to: '/certificate', method: 'GET' })).toMatchObject({ pass: false });
  });

  test('is refused with a bad token as anywhere else', async () => {
    const { ask } = open();
    expect(await ask(link, { authorization: token({}, mallory.privateKey) })).toMatchObject({
      pass: false,
      status: 407,
    });
    expect(await ask(link, { authorization: 'Basic x' })).toMatchObject({ pass: false, status: 407 });
    expect(await ask(link, { authorization: token() })).toEqual({
      pass: true,
      consumer: 'rome',
      purpose: 'api-server',
    });
  });

  test('opens as many connections as one that shows tokens', async () => {
    const { ask } = open();
    const verdicts = await Promise.all(Array.from({ length: 400 }, (_, i) => ask(`10.71.1.${i % 250}`)));
    expect(verdicts.filter(({ pass }) => pass)).toHaveLength(300);
    expect(verdicts.at(-1)).toMatchObject({ pass: false, status: 429, consumer: 'rome' });
  });
});
