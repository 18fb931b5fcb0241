/** An agent whose every request is a function invocation, as API Gateway would make it; its cluster is simulated. */
import type { Control } from '#control/control.ts';
import { type AgentKeys, newAgentKeys, signRequest } from '#control/testing/agent-keys.ts';
import { openFacts, SimulatedCluster } from '#control/testing/simulated-cluster.ts';
import { brokerUrl, type Cloud } from './cloud.ts';
import { connectEvent, disconnectEvent, httpEvent, messageEvent } from './platform-events.ts';

export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly body: T;
}

interface GatewayResult {
  readonly statusCode: number;
  readonly body?: string;
}

export const answerOf = <T>({ statusCode, body }: GatewayResult): Answer<T> => ({
  status: statusCode,
  body: (body === undefined || body === '' ? undefined : JSON.parse(body)) as T,
});

export class LambdaAgent {
  readonly clusterId: string;
  readonly tenant: string;
  readonly cluster: SimulatedCluster;
  readonly connectionId: string;
  readonly #cloud: Cloud;
  readonly #keys: AgentKeys = newAgentKeys();
  readonly #secret: string;

  constructor(cloud: Cloud, joinToken: string) {
    const token = JSON.parse(Buffer.from(joinToken.slice('isthmus1.'.length), 'base64url').toString('utf8'));
    this.clusterId = token.clusterId;
    this.tenant = token.tenant;
    this.connectionId = `conn-${token.clusterId}=`;
    this.#secret = token.secret;
    this.#cloud = cloud;
    // The simulated cluster asks the control plane for three things, and here each of them is an invocation.
    const remote = {
      exchange: {
        desired: async (_: unknown, after: number) =>
          (await this.call('GET', 'channel-agent-desired', '/v1/agent/desired', undefined, { after: String(after) }))
            .body,
        observe: async (_: unknown, batch: unknown) =>
          (await this.call('POST', 'channel-agent-observed', '/v1/agent/observed', batch)).body,
      },
      clusters: { heard: async () => undefined },
    } as unknown as Control;
    this.cluster = new SimulatedCluster(this.clusterId, this.tenant, () => remote);
  }

  async authorize(method: string, path: string, body = ''): Promise<string> {
    const { tenant, clusterId } = this;
    const signed = await signRequest({
      keys: this.#keys,
      tenant,
      clusterId,
      audience: brokerUrl,
      now: Date.now(),
      method,
      path,
      body,
    });
    return signed.authorization ?? '';
  }

  async call<T = Record<string, unknown>>(
    method: string,
    name: string,
    path: string,
    body?: unknown,
    query?: Readonly<Record<string, string>>,
  ): Promise<Answer<T>> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const authorization = await this.authorize(method, path, text);
    const event = httpEvent({
      method,
      path,
      authorization,
      ...(text !== undefined && { body: text }),
      ...(query && { query }),
    });
    return answerOf<T>(await this.#cloud.invoke<GatewayResult>(name, event));
  }

  enroll(): Promise<Answer> {
    return this.call('POST', 'channel-agent-enroll', '/v1/agent/enroll', this.#enrolment());
  }

  /** At a control plane in this process, at a time of the test's choice. */
  async enrollAt(control: Control, now: number): Promise<void> {
    const body = this.#enrolment();
    const text = JSON.stringify(body);
    const { tenant, clusterId } = this;
    const to = { keys: this.#keys, tenant, clusterId, audience: brokerUrl, path: '/v1/agent/enroll' };
    await control.clusters.enroll(body, await signRequest({ ...to, now, body: text }));
  }

  #enrolment() {
    const { clusterId } = this;
    return { clusterId, token: this.#secret, publicKey: this.#keys.publicKey, facts: openFacts };
  }

  async connect(): Promise<number> {
    const authorization = await this.authorize('GET', '/v1/agent/connect');
    const event = connectEvent(this.connectionId, authorization);
    return (await this.#cloud.invoke<GatewayResult>('channel-connect', event)).statusCode;
  }

  async say(frame: unknown): Promise<Answer> {
    const event = messageEvent(this.connectionId, JSON.stringify(frame));
    return answerOf(await this.#cloud.invoke<GatewayResult>('channel-message', event));
  }

  async disconnect(): Promise<number> {
    const event = disconnectEvent(this.connectionId);
    return (await this.#cloud.invoke<GatewayResult>('channel-disconnect', event)).statusCode;
  }

  /** What rang here so far. */
  get rings(): readonly unknown[] {
    return this.#cloud.sockets.posted
      .filter(({ connectionId }) => connectionId === this.connectionId)
      .map((p) => p.frame);
  }
}
