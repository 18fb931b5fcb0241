/** What `isthmus network test` and its test pods say to each other. The pods run the `probe` entry of the agent's image. */

export const probePort = 8_080;
/** Environment variable with the pod's name, which is what it answers. */
export const probeNameEnv = 'POD_NAME';
export const probeProgram = '/app/probe.mjs';
/** More than a tunnel carries in one packet, in both directions. */
export const largeBytes = 65_536;

export interface HttpProbe {
  readonly kind: 'http';
  readonly id: string;
  readonly url: string;
  /** `largeBytes` go there and back, instead of none. */
  readonly large: boolean;
  /** Connections in a row, each a new one; the first that fails ends it. */
  readonly times: number;
}

/** One ICMP echo, from the network that the test pod is in. */
export interface PingProbe {
  readonly kind: 'ping';
  readonly id: string;
  readonly address: string;
  /** Of the whole IPv4 packet, which must not be fragmented. */
  readonly bytes: number;
}

export type Probe = HttpProbe | PingProbe;

export interface ProbeOrder {
  readonly timeoutMs: number;
  /** For how long a probe is repeated until it gets through. */
  readonly patienceMs: number;
  readonly probes: readonly Probe[];
}

const failures = ['timeout', 'refused', 'unreachable', 'broken'] as const;
/** `refused`: a host answered with RST, no process listens there; `unreachable`: the kernel or a router reported no route; `broken`: anything else. */
export type Failure = (typeof failures)[number];

export interface ProbeResult {
  readonly id: string;
  readonly ok: boolean;
  /** Of the attempt that got through, or of all of them. */
  readonly ms: number;
  /** Names of the pods that answered, and the callers' addresses as these pods saw them. Without repetitions, in order of appearance. */
  readonly answeredBy: readonly string[];
  readonly sources: readonly string[];
  readonly failure?: Failure;
  readonly message?: string;
}
