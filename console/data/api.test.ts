/** How the console's requests leave the page. The browser's own `fetch` is played: in Node there is no page to leave. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { api, holder, logOut, Unreachable } from './api.ts';

interface Sent {
  readonly path: string;
  readonly init: RequestInit;
}
let sent: Sent[] = [];
let answer: () => Promise<Response>;

beforeEach(() => {
  sent = [];
  answer = async () => new Response(null, { status: 204 });
  holder.value = { kind: 'operator', principal: 'operator/op_1' };
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => {
    sent.push({ path, init });
    return answer();
  });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a log-out goes on when the page is left right after the click, any other request ends with the page', async () => {
  await logOut();
  await api.getMe();
  expect(sent.map(({ path, init }) => [init.method, path, init.keepalive ?? false])).toEqual([
    ['DELETE', '/console/session', true],
    ['GET', '/v1/tenants/me', false],
  ]);
});

test('a log-out that the broker does not hear is tried again, rejects, and leaves the session in the page', async () => {
  answer = () => Promise.reject(new TypeError('Failed to fetch'));
  const ended = expect(logOut()).rejects.toThrow(Unreachable);
  await vi.runAllTimersAsync();
  await ended;
  expect(sent.length).toBeGreaterThan(1);
  expect(holder.value?.kind).toBe('operator');
});
