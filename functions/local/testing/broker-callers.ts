/** For tests: what an administrator asks of a broker over HTTPS, and clusters that join it. */
import { expect } from 'vitest';
import type { Broker } from '../broker.ts';
import { type Answer, ScriptedAgent, send } from '../scripted-agent.ts';

/** `broker` is asked at each call: a test file has these before its broker has started. */
export function callersOf(broker: () => Broker) {
  const rest = (
    method: string,
    pathname: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> =>
    send({
      method,
      url: broker().url + pathname,
      ca: broker().caPem,
      headers: {
        authorization: `Bearer ${broker().adminKey}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });

  async function tokenFor(cluster: string): Promise<string> {
    const answer = await rest('POST', '/v1/join-tokens', { cluster });
    expect(answer.status).toBe(201);
    return answer.body.token;
  }

  async function joined(cluster: string): Promise<ScriptedAgent> {
    const agent = new ScriptedAgent(await tokenFor(cluster), broker().caPem);
    expect((await agent.enroll()).status).toBe(200);
    return agent;
  }

  return { rest, tokenFor, joined };
}
