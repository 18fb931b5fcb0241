/** An agent of the cost model: a simulated cluster that speaks as `agent/broker` does, at the same intervals, and says nothing when it has nothing to say. */
import { createIntervals } from '#agent/broker/session/poll-interval.ts';
import type { Control } from '#control/control.ts';
import { type AgentKeys, newAgentKeys, signRequest } from '#control/testing/agent-keys.ts';
import { SimulatedCluster } from '#control/testing/simulated-cluster.ts';
import { type DesiredAnswer, type ObservedBatch, protocolVersion } from '#shared/schema/protocol/agent-protocol.ts';
import { type Answer, brokerUrl, type CloudModel } from './cloud-model.ts';

/** In the middle of what `agent/broker/session/notify-socket` draws from. */
const rotateAfterMs = 107.5 * 60_000;
/** `sweepMs` of `agent/broker/broker`. */
const sweepMs = 6 * 3_600_000;

export interface ModelAgentOptions {
  /** One key for many: making keys is not what is measured. */
  readonly keys?: AgentKeys;
  /** Called with every duration of a request, in milliseconds of this machine. */
  readonly onRequest?: (path: string, ms: number) => void;
}

export class ModelAgent {
  readonly id: string;
  readonly tenant: string;
  readonly cluster: SimulatedCluster;
  readonly intervals = createIntervals();
  readonly #model: CloudModel;
  readonly #keys: AgentKeys;
  readonly #secret: string;
  #connections = 0;
  #openedAt = 0;
  #pings = 0;
  #revision = 0;
  #rung = false;
  #pulledAt = 0;
  nextPingAt = Number.POSITIVE_INFINITY;
  rotateAt = Number.POSITIVE_INFINITY;

  constructor(model: CloudModel, joinToken: string, { keys = newAgentKeys() }: ModelAgentOptions = {}) {
    const token = JSON.parse(Buffer.from(joinToken.slice('isthmus1.'.length), 'base64url').toString('utf8'));
    this.id = token.clusterId;
    this.tenant = token.tenant;
    this.#secret = token.secret;
    this.#model = model;
    this.#keys = keys;
    const remote = {
      exchange: {
        desired: async (_: unknown, after: number) => this.#desired(after),
        observe: async (_: unknown, batch: ObservedBatch) => this.#observe(batch),
      },
      clusters: { heard: async () => undefined },
    } as unknown as Control;
    this.cluster = new SimulatedCluster(this.id, this.tenant, () => remote);
  }

  get connectionId(): string {
    return `${this.tenant}-${this.id}-${this.#connections}`;
  }

  async #sign(method: string, path: string, body = ''): Promise<string> {
    const { tenant, id: clusterId } = this;
    const now = this.#model.clock.now();
    const claims = { ver: protocolVersion };
    const input = { keys: this.#keys, tenant, clusterId, audience: brokerUrl, now, method, path, body, claims };
    return (await signRequest(input)).authorization ?? '';
  }

  async #call(method: string, path: string, body?: unknown): Promise<Answer> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const authorization = await this.#sign(method, path.split('?')[0] ?? path, text);
    const answer = await this.#model.http({ method, path, authorization, ...(body !== undefined && { body }) });
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer;
  }

  async #desired(after: number): Promise<DesiredAnswer> {
    const { body } = await this.#call('GET', `/v1/agent/desired?after=${after}`);
    this.intervals.adopt(body);
    this.#revision = body.revision;
    this.#pulledAt = this.#model.clock.now();
    return body;
  }

  async #observe(batch: ObservedBatch): Promise<unknown> {
    if (batch.sets.length === 0 && batch.facts === undefined && batch.asks === undefined) return undefined;
    const { body } = await this.#call('POST', '/v1/agent/observed', batch);
    this.intervals.adopt(body);
    if (body.revision !== this.#revision) this.#rung = true;
    return body;
  }

  async enroll(): Promise<void> {
    const { publicKey } = this.#keys;
    await this.#call('POST', '/v1/agent/enroll', {
      clusterId: this.id,
      token: this.#secret,
      publicKey,
      facts: { ...this.cluster.facts, protocolVersion },
    });
  }

  /** Opens the next doorbell, then closes the one before; reads what is desired when there was none. */
  async connect(): Promise<void> {
    const before = this.#connections === 0 ? undefined : this.connectionId;
    const { clock } = this.#model;
    this.#connections += 1;
    const authorization = await this.#sign('GET', '/v1/agent/connect');
    const { status } = await this.#model.socket('$connect', this.connectionId, { authorization });
    if (status !== 200) throw new Error(`doorbell: ${status}`);
    if (before !== undefined) {
      this.#payConnection();
      await this.#model.socket('$disconnect', before);
    }
    this.#openedAt = clock.now();
    this.#pings = 0;
    this.rotateAt = clock.now() + rotateAfterMs;
    if (before === undefined) await this.cluster.pull();
    this.nextPingAt = clock.now() + this.intervals.heartbeatMs();
  }

  #payConnection(): void {
    this.#model.meter.add('connectionMinute', Math.ceil((this.#model.clock.now() - this.#openedAt) / 60_000));
  }

  /** Ends the measurement: what the open connection has cost so far. */
  settleConnection(): void {
    this.#payConnection();
    this.#openedAt = this.#model.clock.now();
  }

  hear(frame: unknown): void {
    const { type, revision, ...rest } = frame as { readonly type: string; readonly revision?: number };
    if (type === 'pong') this.intervals.adopt(rest);
    if (revision !== undefined && revision !== this.#revision) this.#rung = true;
  }

  async ping(): Promise<void> {
    this.#pings += 1;
    const ping = { type: 'ping', revision: this.#revision, heartbeatSeconds: this.intervals.heartbeatMs() / 1_000 };
    const body = JSON.stringify(this.intervals.wantsAnswer(this.#pings) ? { ...ping, answer: true } : ping);
    const { body: pong } = await this.#model.socket('$default', this.connectionId, { body });
    if (pong !== undefined) this.hear(pong);
    this.nextPingAt = this.#model.clock.now() + this.intervals.heartbeatMs();
  }

  /** What is due, and one pass of its controllers. */
  async step(peerOf: (id: string) => SimulatedCluster | undefined): Promise<void> {
    const now = this.#model.clock.now();
    if (now >= this.rotateAt) await this.connect();
    if (now >= this.nextPingAt) await this.ping();
    // A shorter interval takes effect at once.
    this.nextPingAt = Math.min(this.nextPingAt, now + this.intervals.heartbeatMs());
    if (this.#rung || now - this.#pulledAt >= sweepMs) {
      this.#rung = false;
      await this.cluster.pull();
    }
    this.cluster.work(peerOf);
    await this.cluster.report();
  }
}
