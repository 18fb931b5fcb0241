/** Controls a WireGuard device: wireguard-go by its socket's text protocol, the kernel's by `wg`. A private key is never an argument. */
import { randomBytes } from 'node:crypto';
import { lstat, readFile, readlink } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import type { Commands } from './commands.ts';
import type { TunnelDevice, WireGuardPeer } from './kernel-state.ts';

interface TunnelPeerStatus {
  /** base64 */
  readonly publicKey: string;
  /** As configured, or as learned from its last authentic packet. */
  readonly endpoint: string | undefined;
  /** Milliseconds of the Unix epoch; undefined before the first. */
  readonly lastHandshakeMs: number | undefined;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  /** 0: none. */
  readonly keepaliveSeconds: number;
}

export interface TunnelStatus {
  readonly listenPort: number;
  readonly peers: readonly TunnelPeerStatus[];
}

export interface TunnelControl {
  read(): Promise<TunnelStatus>;
  /** Writes what differs, and answers in words what that was. Sessions survive unless the peer's key or ours changes. */
  configure(device: TunnelDevice): Promise<readonly string[]>;
  /**
   * Sends a handshake to this endpoint at once. Sessions with the peer go on receiving, so that one which the peer has just made is not lost;
   * what is sent to the peer waits for the next session.
   */
  shakeHands(peer: ReachablePeer): Promise<void>;
  /** Without session and endpoint until the peer calls. */
  forget(publicKey: string): Promise<void>;
}

type ReachablePeer = WireGuardPeer & Required<Pick<WireGuardPeer, 'endpoint' | 'keepaliveSeconds'>>;

interface Raw extends TunnelStatus {
  /** base64; empty when none is set. */
  readonly privateKey: string;
}

/** How to talk to one device: both ways give and take the same. */
interface DeviceDriver {
  get(): Promise<Raw>;
  set(changes: Changes): Promise<void>;
  /**
   * A change of the device's own key is the one thing for which WireGuard starts a handshake before its 5 s since the last one have passed and
   * yet keeps what it needs to receive: `passing` is put in and taken out again. The keepalive, switched off and on, is the packet to send.
   */
  renew(keys: { readonly own: string; readonly passing: string }, peer: ReachablePeer): Promise<void>;
}

interface Changes {
  /** base64 */
  readonly privateKey?: string;
  readonly listenPort?: number;
  readonly removed?: readonly string[];
  readonly peer?: WireGuardPeer;
}

const keyBytes = 32;

/** What reads the device and then writes it does so one after the other: a key that is only passing is never taken for the device's own. */
function controlOf(driver: DeviceDriver): TunnelControl {
  let last: Promise<unknown> = Promise.resolve();
  function serialized<T>(work: () => Promise<T>): Promise<T> {
    const mine = last.then(work, work);
    last = mine.catch(() => undefined);
    return mine;
  }
  return {
    async read() {
      const { listenPort, peers } = await driver.get();
      return { listenPort, peers };
    },
    configure: (device) => serialized(() => configure(driver, device)),
    shakeHands: (peer) => serialized(() => shakeHands(driver, peer)),
    forget: (publicKey) =>
      serialized(async () => {
        await driver.set({ removed: [publicKey] });
        await driver.set({ peer: { publicKey } });
      }),
  };
}

async function configure(driver: DeviceDriver, device: TunnelDevice): Promise<readonly string[]> {
  const has = await driver.get();
  const privateKey = await privateKeyIn(device.privateKeyFile);
  const { peer } = device;
  const found = has.peers.find(({ publicKey }) => publicKey === peer?.publicKey);
  const removed = has.peers.map(({ publicKey }) => publicKey).filter((key) => key !== peer?.publicKey);
  const changes: Changes = {
    ...(has.privateKey === privateKey ? {} : { privateKey }),
    ...(has.listenPort === device.listenPort ? {} : { listenPort: device.listenPort }),
    ...(removed.length === 0 ? {} : { removed }),
    ...(peer && !agrees(found, peer) ? { peer } : {}),
  };
  if (Object.keys(changes).length > 0) await driver.set(changes);
  return [
    ...(changes.privateKey === undefined ? [] : ['private key']),
    ...(changes.listenPort === undefined ? [] : [`listen port ${device.listenPort}`]),
    ...removed.map((key) => `without peer ${key}`),
    ...(changes.peer ? [`peer ${changes.peer.publicKey} at ${changes.peer.endpoint ?? 'where it calls from'}`] : []),
  ];
}

async function shakeHands(driver: DeviceDriver, peer: ReachablePeer): Promise<void> {
  const { privateKey: own, peers } = await driver.get();
  // A device without key has no session, and a peer that it has not heard of is dialled when it is put in.
  if (own === '' || !peers.some(({ publicKey }) => publicKey === peer.publicKey)) return driver.set({ peer });
  await driver.renew({ own, passing: randomBytes(keyBytes).toString('base64') }, peer);
}

/** An endpoint that the device learned stays when none is wanted. */
const agrees = (found: TunnelPeerStatus | undefined, { endpoint, keepaliveSeconds = 0 }: WireGuardPeer): boolean =>
  found !== undefined &&
  found.keepaliveSeconds === keepaliveSeconds &&
  (endpoint === undefined || endpoint === found.endpoint);

async function privateKeyIn(file: string): Promise<string> {
  const bytes = await readFile(file);
  if (bytes.length !== keyBytes)
    throw new AppError(
      'invalid_input',
      `the private key in ${file} has ${bytes.length} bytes, accepted are ${keyBytes}`,
    );
  return bytes.toString('base64');
}

const hex = (base64: string): string => Buffer.from(base64, 'base64').toString('hex');
const base64 = (hexadecimal: string): string => Buffer.from(hexadecimal, 'hex').toString('base64');

/** Where wireguard-go of process `pid` has its sockets; an absolute link in its file system starts at its root, not ours. */
export async function controlSocket(pid: number | undefined, device: string): Promise<string> {
  const root = pid === undefined ? '/' : `/proc/${pid}/root`;
  const run = path.join(root, 'var/run');
  const target = (await lstat(run).catch(() => undefined))?.isSymbolicLink() ? await readlink(run) : '/var/run';
  return path.join(root, target.startsWith('/') ? target : path.join('var', target), 'wireguard', `${device}.sock`);
}

/** wireguard-go of process `pid`, or one that shares our file system. */
export function userspaceTunnel(pid: number | undefined, device: string): TunnelControl {
  const exchangeText = async (request: string): Promise<string> => exchange(await controlSocket(pid, device), request);
  return controlOf({
    get: async () => parseUapi(await exchangeText('get=1\n\n')),
    set: async (changes) => void (await exchangeText(uapiRequest(changes))),
    renew: async ({ own, passing }, { publicKey, endpoint, keepaliveSeconds }) =>
      void (await exchangeText(
        [
          'set=1',
          `private_key=${hex(passing)}`,
          `private_key=${hex(own)}`,
          `public_key=${hex(publicKey)}`,
          'update_only=true',
          `endpoint=${endpoint}`,
          'persistent_keepalive_interval=0',
          `persistent_keepalive_interval=${keepaliveSeconds}`,
          '',
          '',
        ].join('\n'),
      )),
  });
}

const longestMs = 5_000;

/** One request, one answer that ends with an empty line and says `errno=0`. */
function exchange(socket: string, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const connection = net.connect(socket);
    const fail = (message: string, cause?: unknown): void => {
      connection.destroy();
      reject(new AppError('command_failed', `wireguard-go at ${socket}: ${message}`, { cause }));
    };
    connection.setEncoding('utf8');
    connection.setTimeout(longestMs, () => fail(`no answer for ${longestMs / 1000} s`));
    connection.on('error', (error) => fail(error.message, error));
    connection.on('connect', () => connection.write(request));
    connection.on('data', (chunk: string) => {
      answer += chunk;
      if (!answer.endsWith('\n\n')) return;
      connection.destroy();
      const errno = /^errno=(-?\d+)$/m.exec(answer)?.[1];
      if (errno === '0') resolve(answer);
      else fail(`errno ${errno ?? 'missing'}`);
    });
    connection.on('end', () => fail('closed before it answered'));
  });
}

export function uapiRequest({ privateKey, listenPort, removed = [], peer }: Changes): string {
  return [
    'set=1',
    ...(privateKey === undefined ? [] : [`private_key=${hex(privateKey)}`]),
    ...(listenPort === undefined ? [] : [`listen_port=${listenPort}`]),
    ...removed.flatMap((key) => [`public_key=${hex(key)}`, 'remove=true']),
    ...(peer
      ? [
          `public_key=${hex(peer.publicKey)}`,
          ...(peer.endpoint === undefined ? [] : [`endpoint=${peer.endpoint}`]),
          `persistent_keepalive_interval=${peer.keepaliveSeconds ?? 0}`,
          'replace_allowed_ips=true',
          'allowed_ip=0.0.0.0/0',
        ]
      : []),
    '',
    '',
  ].join('\n');
}

export function parseUapi(answer: string): Raw {
  let privateKey = '';
  let listenPort = 0;
  const peers: Record<string, string>[] = [];
  for (const line of answer.split('\n')) {
    const at = line.indexOf('=');
    const [key, value] = [line.slice(0, at), line.slice(at + 1)];
    if (key === 'private_key') privateKey = base64(value);
    else if (key === 'listen_port') listenPort = Number(value);
    else if (key === 'public_key') peers.push({ public_key: value });
    else Object.assign(peers.at(-1) ?? {}, { [key]: value });
  }
  return { privateKey, listenPort, peers: peers.map(peerOf) };
}

function peerOf(fields: Readonly<Record<string, string>>): TunnelPeerStatus {
  const number = (key: string): number => Number(fields[key] ?? 0);
  const handshake = number('last_handshake_time_sec') * 1000 + Math.floor(number('last_handshake_time_nsec') / 1e6);
  return {
    publicKey: base64(fields.public_key ?? ''),
    endpoint: fields.endpoint,
    lastHandshakeMs: handshake === 0 ? undefined : handshake,
    receivedBytes: number('rx_bytes'),
    sentBytes: number('tx_bytes'),
    keepaliveSeconds: number('persistent_keepalive_interval'),
  };
}

/** The kernel's device, by wireguard-tools, whose key file only we can read. */
export function kernelTunnel(commands: Pick<Commands, 'must' | 'file'>, device: string): TunnelControl {
  async function wgSet(privateKey: string | undefined, args: readonly string[]): Promise<void> {
    const key = privateKey === undefined ? undefined : await commands.file('key', `${privateKey}\n`);
    try {
      await commands.must('wg', ['set', device, ...(key === undefined ? [] : ['private-key', key]), ...args]);
    } finally {
      if (key !== undefined) await commands.file('key', '');
    }
  }
  return controlOf({
    get: async () => parseDump(await commands.must('wg', ['show', device, 'dump'])),
    async renew({ own, passing }, { publicKey, endpoint, keepaliveSeconds }) {
      const peer = ['peer', publicKey, 'endpoint', endpoint, 'persistent-keepalive'];
      try {
        await wgSet(passing, [...peer, '0']);
      } finally {
        await wgSet(own, [...peer, String(keepaliveSeconds)]);
      }
    },
    async set({ privateKey, listenPort, removed = [], peer }) {
      await wgSet(privateKey, [
        ...(listenPort === undefined ? [] : ['listen-port', String(listenPort)]),
        ...removed.flatMap((gone) => ['peer', gone, 'remove']),
        ...(peer ? ['peer', peer.publicKey] : []),
        ...(peer?.endpoint === undefined ? [] : ['endpoint', peer.endpoint]),
        ...(peer ? ['persistent-keepalive', String(peer.keepaliveSeconds ?? 0), 'allowed-ips', '0.0.0.0/0'] : []),
      ]);
    },
  });
}

/** First the device: private key, public key, port, fwmark; then peers: key, preshared, endpoint, allowed, handshake, received, sent, keepalive. */
export function parseDump(dump: string): Raw {
  const [device = '', ...peers] = dump.trimEnd().split('\n');
  const [privateKey = '', , listenPort = '0'] = device.split('\t');
  const given = (text: string | undefined): string | undefined => (text === '(none)' ? undefined : text);
  return {
    privateKey: given(privateKey) ?? '',
    listenPort: Number(listenPort),
    peers: peers.map((line) => {
      const [publicKey = '', , endpoint, , handshake = '0', received = '0', sent = '0', keepalive = 'off'] =
        line.split('\t');
      return {
        publicKey,
        endpoint: given(endpoint),
        lastHandshakeMs: handshake === '0' ? undefined : Number(handshake) * 1000,
        receivedBytes: Number(received),
        sentBytes: Number(sent),
        keepaliveSeconds: keepalive === 'off' ? 0 : Number(keepalive),
      };
    }),
  };
}
