import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loggable, masked } from './log-record.ts';

const secret = 's3cret-value';
const names = ['token', 'password', 'privateKey', 'authorization', 'kubeconfig', 'secret', 'nonce'];
const spellings = ['Authorization', 'join_token', 'proxy-authorization', 'accessToken', 'PRIVATE_KEY', 'clientSecret'];

/** What holds `inner` somewhere: member, item, map, set, cause, detail or a member of an aggregate. */
const around = (inner: unknown, how: string): unknown => {
  switch (how) {
    case 'list':
      return ['a', inner];
    case 'map':
      return new Map<unknown, unknown>([['here', inner]]);
    case 'set':
      return new Set([inner]);
    case 'cause':
      return new Error('outer', { cause: inner });
    case 'detail':
      return Object.assign(new Error('outer'), { detail: inner });
    case 'aggregate':
      return new AggregateError([inner], 'several');
    case 'toJSON':
      return { toJSON: () => inner };
    default:
      return { inner };
  }
};
const ways = ['member', 'list', 'map', 'set', 'cause', 'detail', 'aggregate', 'toJSON'];

const holders: readonly ((name: string, value: unknown) => unknown)[] = [
  (name, value) => ({ [name]: value }),
  (name, value) => new Map([[name, value]]),
  (name, value) => Object.assign(new Error('with a detail'), { detail: { [name]: value } }),
];

describe('a log record', () => {
  test('holds no value of a member that is named like a credential, at any depth and in any container', () => {
    const value = fc.oneof(
      fc.constant(secret),
      fc.constant({ inside: secret }),
      fc.constant([secret]),
      fc.constant(new Map([['inside', secret]])),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...names, ...spellings),
        value,
        fc.constantFrom(...holders),
        fc.array(fc.constantFrom(...ways), { maxLength: 20 }),
        fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }),
        (name, hidden, holder, path, beside) => {
          const deep = path.reduce((inner, how) => around(inner, how), holder(name, hidden));
          expect(JSON.stringify(loggable({ ...beside, deep }))).not.toContain(secret);
        },
      ),
    );
  });

  test('keeps every value that JSON can hold and no name makes a secret', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.jsonValue({ maxDepth: 4 })), (fields) => {
        const plain = JSON.parse(JSON.stringify(fields)) as Record<string, unknown>;
        if (/token|secret|nonce|password|key|config|cookie|authorization|phrase/i.test(JSON.stringify(plain))) return;
        expect(JSON.parse(JSON.stringify(loggable(plain)))).toEqual(plain);
      }),
    );
  });

  test('says that a credential was there, and keeps the names of files and objects that hold one', () => {
    expect(loggable({ token: secret, tokenFile: '/run/token', secretName: 'keys', tokens: [secret] })).toEqual({
      token: masked,
      tokenFile: '/run/token',
      secretName: 'keys',
      tokens: masked,
    });
  });

  test('says of an error its name, message, code, detail and causes', () => {
    const cause = Object.assign(new Error('ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const error = Object.assign(new Error('not reachable', { cause }), { detail: { server: 'x', token: secret } });
    expect(loggable({ error })).toMatchObject({
      error: {
        name: 'Error',
        message: 'not reachable',
        detail: { server: 'x', token: masked },
        cause: { message: 'ECONNREFUSED', code: 'ECONNREFUSED' },
      },
    });
  });

  test('can be written as JSON for every value of its fields', () => {
    const circle: Record<string, unknown> = {};
    circle.self = { circle };
    const failing = {
      get broken(): never {
        throw new Error('no');
      },
    };
    const shared = { a: 1 };
    const record = loggable({
      circle,
      failing,
      big: 2n ** 70n,
      bytes: Buffer.from(secret),
      date: new Date(0),
      twice: [shared, shared],
    });
    expect(JSON.parse(JSON.stringify(record))).toEqual({
      circle: { self: { circle: '[circular]' } },
      failing: '[unreadable]',
      big: '1180591620717411303424',
      bytes: '[12 bytes]',
      date: '1970-01-01T00:00:00.000Z',
      twice: [{ a: 1 }, { a: 1 }],
    });
  });

  test('has a bounded size however much it is given', () => {
    let reads = 0;
    const endless = {
      *[Symbol.iterator]() {
        for (;;) yield reads++;
      },
    };
    const items = new Set<unknown>();
    Object.defineProperty(items, Symbol.iterator, { value: () => endless[Symbol.iterator]() });
    let chain = new Error('innermost', { cause: { token: secret } });
    for (let i = 0; i < 5_000; i++) chain = new Error('outer', { cause: chain });
    const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`member${i}`, [i]]));
    const text = JSON.stringify(loggable({ items, chain, wide }));
    expect(reads).toBeLessThan(3_000);
    expect(text.match(/outer/g)?.length ?? 0).toBeLessThan(100);
    expect(text).not.toContain('member3000');
    expect(text).toContain('left out');
  });
});
