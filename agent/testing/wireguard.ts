/**
 * One end of WireGuard as the kernel and wireguard-go keep it, without the cryptography: three generations of keys, one handshake under way, 5 s
 * between two of them, packets that wait for a session (device/{peer,send,receive,noise-protocol}.go of wireguard-go).
 */

export type Packet =
  | { readonly is: 'initiation'; readonly session: string; readonly at: number }
  | { readonly is: 'response'; readonly session: string }
  | { readonly is: 'data'; readonly session: string; readonly payload?: string };

interface Keys {
  readonly session: string;
  sends: boolean;
}

const rekeyTimeoutMs = 5_000;
const keepaliveMs = 5_000;

export interface EndPorts {
  readonly name: string;
  readonly now: () => number;
  readonly transmit: (to: string, packet: Packet) => void;
  readonly deliver: (payload: string) => void;
}

export class WireGuardEnd {
  endpoint: string | undefined;
  receivedBytes = 0;
  handshakeAt: number | undefined;
  readonly #ports: EndPorts;
  #current: Keys | undefined;
  #next: Keys | undefined;
  #previous: Keys | undefined;
  #underWay: string | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;
  #sentAt = Number.NEGATIVE_INFINITY;
  #newest = Number.NEGATIVE_INFINITY;
  #staged: (string | undefined)[] = [];
  #serial = 0;

  constructor(ports: EndPorts) {
    this.#ports = ports;
  }

  /** Of these sessions it takes what the peer sends. */
  get accepts(): readonly string[] {
    return [this.#current, this.#next, this.#previous].flatMap((keys) => (keys ? [keys.session] : []));
  }

  /** The endpoint, the device's key changed and changed back, the keepalive switched off and on. */
  shakeHands(endpoint: string): void {
    this.endpoint = endpoint;
    this.#underWay = undefined;
    this.#triedAt = Number.NEGATIVE_INFINITY;
    for (const keys of [this.#current, this.#next]) if (keys) keys.sends = false;
    if (this.#staged.length === 0) this.#staged.push(undefined);
    this.#flush();
  }

  /** The peer taken out and put in again. */
  replace(endpoint: string): void {
    this.#current = undefined;
    this.#next = undefined;
    this.#previous = undefined;
    this.#staged = [];
    this.receivedBytes = 0;
    this.handshakeAt = undefined;
    this.shakeHands(endpoint);
  }

  send(payload: string): void {
    this.#staged = [...this.#staged, payload].slice(-128);
    this.#flush();
  }

  receive(from: string, packet: Packet): void {
    if (packet.is === 'initiation') this.#answer(from, packet);
    else if (packet.is === 'response') this.#complete(from, packet.session);
    else this.#take(from, packet);
  }

  /** Time has passed. */
  tick(): void {
    const now = this.#ports.now();
    const waits = this.#underWay !== undefined || this.#staged.length > 0;
    if (waits && now - this.#triedAt >= rekeyTimeoutMs && !this.#current?.sends) this.#initiate();
    if (this.#current?.sends && now - this.#sentAt >= keepaliveMs) {
      this.#staged.push(undefined);
      this.#flush();
    }
  }

  #answer(from: string, { session, at }: Packet & { is: 'initiation' }): void {
    if (at <= this.#newest) return;
    this.#newest = at;
    this.#heard(from, 148);
    this.#underWay = undefined;
    this.#previous = undefined;
    this.#next = { session, sends: true };
    this.#triedAt = this.#ports.now();
    this.#transmit({ is: 'response', session });
  }

  #complete(from: string, session: string): void {
    if (this.#underWay !== session) return;
    this.#underWay = undefined;
    this.#previous = this.#next ?? this.#current;
    this.#next = undefined;
    this.#current = { session, sends: true };
    this.handshakeAt = this.#ports.now();
    this.#heard(from, 92);
    if (this.#staged.length === 0) this.#staged.push(undefined);
    this.#flush();
  }

  #take(from: string, { session, payload }: Packet & { is: 'data' }): void {
    const keys = [this.#current, this.#next, this.#previous].find((one) => one?.session === session);
    if (keys === undefined) return;
    this.#heard(from, 32 + (payload?.length ?? 0));
    if (keys === this.#next) {
      this.#previous = this.#current;
      this.#current = keys;
      this.#next = undefined;
      this.handshakeAt = this.#ports.now();
      this.#flush();
    }
    if (payload !== undefined) this.#ports.deliver(payload);
  }

  #heard(from: string, bytes: number): void {
    this.endpoint = from;
    this.receivedBytes += bytes;
  }

  #flush(): void {
    if (this.#staged.length === 0) return;
    const keys = this.#current;
    if (!keys?.sends) {
      this.#initiate();
      return;
    }
    for (const payload of this.#staged)
      this.#transmit({ is: 'data', session: keys.session, ...(payload === undefined ? {} : { payload }) });
    this.#staged = [];
  }

  #initiate(): void {
    const now = this.#ports.now();
    if (now - this.#triedAt < rekeyTimeoutMs) return;
    this.#triedAt = now;
    this.#underWay = `${this.#ports.name}${++this.#serial}`;
    this.#transmit({ is: 'initiation', session: this.#underWay, at: now });
  }

  #transmit(packet: Packet): void {
    this.#sentAt = this.#ports.now();
    if (this.endpoint !== undefined) this.#ports.transmit(this.endpoint, packet);
  }
}
