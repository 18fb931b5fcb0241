/**
 * An agent written from docs/agent-protocol.md alone: node's own modules and a WebSocket, nothing of this repository. Its cluster is a map in memory.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import path from 'node:path';
import { connect as tlsConnect } from 'node:tls';
import { WebSocket } from 'ws';

const { ISTHMUS_STATE_DIR: stateDir = '.', ISTHMUS_JOIN_TOKEN: joinToken, ISTHMUS_ROTATE_KEY: rotate } = process.env;
const stateFile = path.join(stateDir, 'state.json');
mkdirSync(stateDir, { recursive: true });

const log = (text) => console.log(`${new Date().toISOString()} ${text}`);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const sha256 = (bytes) => createHash('sha256').update(bytes);

const readState = () => {
  try {
    return JSON.parse(readFileSync(stateFile, 'utf8'));
  } catch {
    return undefined;
  }
};
const writeState = (state) => writeFileSync(stateFile, JSON.stringify(state), { mode: 0o600 });
const newKey = () => generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });

/** What the join token says of the broker's certificate decides; nothing is sent over this connection. */
const caByHash = (url, caHash) =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = tlsConnect({ host: hostname, port: Number(port || 443), rejectUnauthorized: false }, () => {
      const seen = new Set();
      for (
        let at = socket.getPeerCertificate(true);
        at?.raw && !seen.has(at.fingerprint256);
        at = at.issuerCertificate
      ) {
        seen.add(at.fingerprint256);
        if (sha256(at.raw).digest('hex') !== caHash) continue;
        socket.destroy();
        return resolve(`-----BEGIN CERTIFICATE-----\n${at.raw.toString('base64')}\n-----END CERTIFICATE-----\n`);
      }
      socket.destroy();
      reject(new Error('no certificate of the broker has the hash of the join token'));
    });
    socket.on('error', reject);
  });

let state = readState();
let token;
if (joinToken !== undefined) {
  token = JSON.parse(Buffer.from(joinToken.replace(/^isthmus1\./, ''), 'base64url').toString('utf8'));
  const { url, tenant, clusterId, caHash } = token;
  const ca = caHash === undefined ? undefined : await caByHash(url, caHash);
  const known = state?.key;
  state = { url, tenant, clusterId, ca, key: known && rotate !== '1' ? known : newKey() };
  if (known && rotate === '1') state.former = known;
  if (known === undefined) writeState(state);
}
if (state === undefined) throw new Error('there is neither a join token nor a state of an earlier start');

/** A fresh signature each time. */
function authorization(method, at, body) {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: state.clusterId,
    sub: `${state.tenant}/${state.clusterId}`,
    aud: state.url,
    iat: now,
    exp: now + 60,
    jti: randomUUID(),
    htm: method,
    htp: at.split('?')[0],
    bsh: sha256(body).digest('base64url'),
    ver: 2,
  };
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'EdDSA' })}.${part(claims)}`;
  return `Bearer ${text}.${sign(null, Buffer.from(text), createPrivateKey(state.key)).toString('base64url')}`;
}

/** Rejects with `status`, `code` and `retryAfterMs` of a refusal. */
const once = (method, at, body) =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = {
      authorization: authorization(method, at, text),
      ...(text && { 'content-type': 'application/json' }),
    };
    const sent = request(state.url + at, { method, headers, ca: state.ca, timeout: 30_000 }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const answer = JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}');
        if (response.statusCode === 200) return resolve(answer);
        const retryAfterMs = Number(response.headers['retry-after'] ?? 0) * 1000;
        reject(
          Object.assign(new Error(`${method} ${at}: ${answer.code}`), { status: response.statusCode, retryAfterMs }),
        );
      });
    });
    sent.on('error', reject);
    sent.on('timeout', () => sent.destroy(new Error('no answer within 30 s')));
    sent.end(text);
  });

/** Doubles from half a second to 30, at a random moment, never before Retry-After. Gives up what does not pass by itself. */
async function call(method, at, body) {
  for (let failures = 0; ; failures += 1) {
    try {
      return await once(method, at, body);
    } catch (error) {
      const passes = error.status === undefined || error.status === 429 || error.status >= 500;
      if (!passes) throw error;
      log(`${error.message}; again`);
      await sleep(error.retryAfterMs + Math.random() * Math.min(30_000, 500 * 2 ** failures));
    }
  }
}

const facts = {
  agentVersion: 'tiny-1',
  protocolVersion: 2,
  capabilities: [],
  kubernetesVersion: 'v1.34.0',
  apiServerUrl: 'https://192.0.2.10:6443',
  apiServerCa: 'PEM',
  podCidrs: ['10.9.0.0/16'],
  serviceCidrs: ['10.10.0.0/16'],
  nodes: 1,
  allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
  policies: [
    {
      name: 'default',
      asConsumer: { enabled: true, autoAccept: true, peers: ['*'] },
      asProvider: {
        enabled: true,
        autoAccept: true,
        peers: ['*'],
        maxResourcesPerPeer: { cpu: '4' },
        classes: ['default'],
      },
    },
  ],
};

if (token !== undefined) {
  const publicKey = createPublicKey(createPrivateKey(state.key));
  const { kty, crv, x } = publicKey.export({ format: 'jwk' });
  const proof = {};
  if (state.former !== undefined) {
    const digest = sha256(publicKey.export({ type: 'spki', format: 'der' })).digest('hex');
    const text = Buffer.from(`isthmus.dev/key-succession\nsha256:${digest}`);
    proof.succession = sign(null, text, createPrivateKey(state.former)).toString('base64');
  }
  const body = { clusterId: state.clusterId, token: token.secret, publicKey: { kty, crv, x }, facts, ...proof };
  await call('POST', '/v1/agent/enroll', body);
  delete state.former;
  writeState(state);
  log('enrolled');
}

/** The cluster: by peering, what exists there. */
const cluster = new Map();
const sets = new Map();
let revision = 0;
let pace = { heartbeatSeconds: 25, pollSeconds: 30 };
let doorbellUrl;
let socket;
let factsTold = false;
const told = new Map();

function takePace({ heartbeatSeconds = pace.heartbeatSeconds, pollSeconds = pace.pollSeconds }) {
  pace = { heartbeatSeconds: Math.min(heartbeatSeconds, 86_400), pollSeconds: Math.min(pollSeconds, 86_400) };
}

async function ask() {
  const answer = await call('GET', `/v1/agent/desired?after=${revision}`);
  takePace(answer);
  if (answer.full) sets.clear();
  revision = answer.revision;
  for (const set of answer.sets) sets.set(set.peering, set);
  for (const set of sets.values()) {
    const objects = new Map();
    if (set.state === 'present') {
      const before = cluster.get(set.peering) ?? new Map();
      for (const { apiVersion, kind, metadata, spec } of set.objects) {
        const id = `${kind}/${metadata.namespace ?? ''}/${metadata.name}`;
        const uid = before.get(id)?.uid ?? randomUUID();
        const { name, namespace } = metadata;
        objects.set(id, { apiVersion, kind, name, ...(namespace && { namespace }), uid, data: spec ? { spec } : {} });
      }
    }
    cluster.set(set.peering, objects);
  }
}

async function report() {
  const changed = [...sets.values()]
    .map(({ peering, role, revision: appliedRevision }) => ({
      peering,
      role,
      appliedRevision,
      objects: [...(cluster.get(peering)?.values() ?? [])],
      refusals: [],
    }))
    .filter((set) => told.get(set.peering) !== JSON.stringify(set));
  const answer = await call('POST', '/v1/agent/observed', { sets: changed, ...(!factsTold && { facts }) });
  factsTold = true;
  for (const set of changed) told.set(set.peering, JSON.stringify(set));
  takePace(answer);
  doorbellUrl = answer.doorbellUrl;
  if (answer.revision > revision) raise();
}

/** One exchange at a time; what comes meanwhile causes one more. */
let wake = () => undefined;
let due = true;
function raise() {
  due = true;
  wake();
}

let socketFailures = 0;
function openSocket() {
  const url = doorbellUrl ?? `${state.url.replace(/^http/, 'ws')}/v1/agent/connect`;
  const headers = { authorization: authorization('GET', '/v1/agent/connect', '') };
  const mine = new WebSocket(url, { headers, handshakeTimeout: 10_000, ...(doorbellUrl ? {} : { ca: state.ca }) });
  let beating;
  let pings = 0;
  let askedAt;
  const beat = () => {
    if (askedAt !== undefined && Date.now() - askedAt > 60_000) return mine.terminate();
    pings += 1;
    const answer = pings % 8 === 0;
    if (answer) askedAt ??= Date.now();
    const { heartbeatSeconds } = pace;
    mine.send(JSON.stringify({ type: 'ping', revision, heartbeatSeconds, ...(answer && { answer }) }));
    beating = setTimeout(beat, heartbeatSeconds * 1000);
  };
  mine.on('open', () => {
    socketFailures = 0;
    socket = mine;
    raise();
    beating = setTimeout(beat, pace.heartbeatSeconds * 1000);
  });
  mine.on('message', (data) => {
    const frame = JSON.parse(String(data));
    if (frame.type === 'pong') {
      askedAt = undefined;
      takePace(frame);
    }
    if ((frame.type === 'desired' || frame.type === 'pong') && (frame.revision ?? revision) !== revision) raise();
  });
  mine.on('error', (error) => log(`WebSocket: ${error.message}`));
  mine.on('close', () => {
    clearTimeout(beating);
    if (socket === mine) socket = undefined;
    raise();
    const window = Math.min(120_000, 2000 * 2 ** socketFailures);
    socketFailures += 1;
    setTimeout(openSocket, Math.random() * window);
  });
}

process.on('SIGTERM', () => process.exit(0));
openSocket();
for (;;) {
  due = false;
  await ask();
  await report();
  if (due) continue;
  const woken = new Promise((resolve) => {
    wake = resolve;
  });
  // With a WebSocket, pings say that the cluster lives, and rings that there is news.
  const quiet = socket === undefined ? sleep(pace.pollSeconds * 1000) : woken;
  await Promise.race([woken, quiet]);
}
