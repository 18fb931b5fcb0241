/** Connections from kubeconfig text. Inline credentials are read here; plugins, auth providers and files go through client-node, loaded only then. */
import { readFileSync } from 'node:fs';
import type * as http from 'node:http';
import type { RequestOptions } from 'node:https';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { AnswerBounds } from './answer-bounds.ts';
import { type ClusterConnection, parseServer, rotatingToken } from './connection.ts';
import { createAgent, type ProxyRoute, type TlsMaterial } from './tls.ts';

export interface KubeconfigOptions {
  /** Default: the file's `current-context`. */
  readonly context?: string;
  /** What relative file names in the kubeconfig are relative to. */
  readonly directory?: string;
  /** For a proxy that asks for our identity. `cluster`: the name that the kubeconfig gives to the cluster behind it. */
  readonly proxyToken?: (cluster: string, nonce: string) => Promise<string>;
  /** Opens a token that the kubeconfig holds sealed, for `cluster`. Fails with `invalid_input` where it cannot. */
  readonly openToken?: (sealed: SealedCredential, cluster: string) => Promise<string>;
  /** Set for a kubeconfig from an object of the cluster, which others may write: a reference to a program or to a file of this machine is refused. */
  readonly isFromCluster?: boolean;
  /** Of what the server may take of our memory; default: those of a peer for a kubeconfig that is from a cluster, none for any other. */
  readonly bounds?: AnswerBounds;
  readonly clock?: Pick<Clock, 'now'>;
}

type Fields = Readonly<Record<string, unknown>>;

/** Fails with `invalid_input` naming the field that is missing or wrong. Never quotes a credential. */
export async function connectKubeconfig(text: string, options: KubeconfigOptions = {}): Promise<ClusterConnection> {
  const config = await parseConfig(text);
  const contextName = options.context ?? optional(config, 'current-context', 'current-context');
  if (contextName === undefined) throw refuse('current-context', 'is missing; set it or name a context');
  const context = entry(config, 'contexts', 'context', contextName);
  const clusterName = required(context, 'cluster', `contexts[${contextName}].context.cluster`);
  const cluster = entry(config, 'clusters', 'cluster', clusterName);
  const at = `clusters[${clusterName}].cluster`;
  const server = parseServer(required(cluster, 'server', `${at}.server`), `${at}.server`);
  const userName = optional(context, 'user', `contexts[${contextName}].context.user`);
  const found = userName === undefined || userName === '' ? {} : entry(config, 'users', 'user', userName);
  const userAt = `users[${userName}].user`;
  const user = await opened(found, clusterName, userAt, options.openToken);
  if (options.isFromCluster) requireInline({ [at]: cluster, [userAt]: user });
  const proxy = parseProxy(optional(cluster, 'proxy-url', `${at}.proxy-url`), `${at}.proxy-url`);
  const { proxyToken, bounds = options.isFromCluster ? new AnswerBounds(server.origin) : undefined } = options;
  const now = (): number => options.clock?.now() ?? performance.now();
  const place: Place = {
    server,
    route: proxy && { proxy, token: proxyToken && ((nonce) => proxyToken(clusterName, nonce)) },
    namespace: optional(context, 'namespace', `contexts[${contextName}].context.namespace`),
    tls: {
      ...definedString('servername', optional(cluster, 'tls-server-name', `${at}.tls-server-name`)),
      ...(cluster['insecure-skip-tls-verify'] === true ? { insecure: true } : {}),
    },
    credentials: credentials(user, userAt, now, options.directory),
  };
  if (pluginFields.some((field) => field in user) || 'certificate-authority' in cluster) {
    return connectByPlugin(text, contextName, place, now, options.directory);
  }
  const tls: TlsMaterial = {
    ...place.tls,
    ...definedString('ca', pem(cluster, 'certificate-authority-data', at)),
    ...definedString('cert', pem(user, 'client-certificate-data', userAt)),
    ...definedString('key', pem(user, 'client-key-data', userAt)),
  };
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    const missing = tls.cert === undefined ? 'client-certificate-data' : 'client-key-data';
    throw refuse(`${userAt}.${missing}`, 'is missing; a client certificate needs its key and the key its certificate');
  }
  return { ...connection(place, createAgent(server, tls, place.route), tls.ca), ...(bounds && { bounds }) };
}

/** Of the extension by which a kubeconfig of ours holds a token that only the agent reads. */
export const sealedTokenExtension = 'isthmus.dev/sealed-token';

interface SealedCredential {
  readonly sealed: string;
  /** User name that the token must be for: all of it, or its end from a colon on. */
  readonly account: string;
}

/** The fields of a user with the token that it holds sealed, if it does, in the clear. */
async function opened(
  user: Fields,
  cluster: string,
  at: string,
  openToken: KubeconfigOptions['openToken'],
): Promise<Fields> {
  const extensions = Array.isArray(user.extensions) ? user.extensions.filter(isFields) : [];
  const held = extensions.find(({ name }) => name === sealedTokenExtension)?.extension;
  if (!isFields(held)) return user;
  const field = `${at}.extensions[${sealedTokenExtension}]`;
  const sealed = required(held, 'sealed', `${field}.sealed`);
  const account = required(held, 'account', `${field}.account`);
  if (openToken === undefined)
    throw refuse(field, 'holds a token that only the agent of the cluster can open, by the key of the cluster');
  return { ...user, token: await openToken({ sealed, account }, cluster) };
}

interface Place {
  readonly server: URL;
  readonly route: ProxyRoute | undefined;
  readonly namespace: string | undefined;
  readonly tls: TlsMaterial;
  readonly credentials: () => Readonly<Record<string, string>>;
}

/** What client-node is asked for. */
const pluginFields = ['exec', 'auth-provider', 'client-certificate', 'client-key'];
/** What is taken from outside of the text. */
const outsideFields = [...pluginFields, 'tokenFile', 'certificate-authority'];

function requireInline(places: Readonly<Record<string, Fields>>): void {
  for (const [at, fields] of Object.entries(places)) {
    const field = outsideFields.find((one) => one in fields);
    if (field === undefined) continue;
    throw refuse(
      `${at}.${field}`,
      'would run a program or read a file of the agent, which no kubeconfig in a cluster may; give certificate-authority-data, and token or client-certificate-data with client-key-data',
    );
  }
}

function connection(place: Place, agent: http.Agent, ca: string | undefined): ClusterConnection {
  return {
    server: place.server,
    ca,
    namespace: place.namespace,
    agent,
    headers: place.credentials,
    async authorize() {},
    close: () => agent.destroy(),
  };
}

/** How long what a plugin or a file gave is used without asking again. */
const pluginLifeMs = 30_000;

/** client-node runs the plugin (and remembers its token until it expires) or reads the files; we keep our own pool. */
async function connectByPlugin(
  text: string,
  context: string,
  place: Place,
  now: () => number,
  directory: string | undefined,
): Promise<ClusterConnection> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const loaded = new KubeConfig();
  loaded.loadFromString(text);
  loaded.setCurrentContext(context);
  if (directory !== undefined) loaded.makePathsAbsolute(directory);
  let headers: Readonly<Record<string, string>> = {};
  let agent: http.Agent | undefined;
  let material: TlsMaterial = {};
  let authorizedAt = Number.NEGATIVE_INFINITY;
  const ask = async (): Promise<void> => {
    const found: RequestOptions = {};
    try {
      await loaded.applyToHTTPSOptions(found);
    } catch (cause) {
      throw new AppError('kube_unauthorized', `the credentials of context ${context} could not be obtained`, { cause });
    }
    const next: TlsMaterial = {
      ...place.tls,
      ...definedString('ca', asText(found.ca)),
      ...definedString('cert', asText(found.cert)),
      ...definedString('key', asText(found.key)),
    };
    if (agent === undefined || next.cert !== material.cert || next.key !== material.key || next.ca !== material.ca) {
      agent = createAgent(place.server, next, place.route);
      material = next;
    }
    const given = Object.entries(found.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]);
    headers = { ...Object.fromEntries(given), ...place.credentials() };
    authorizedAt = now();
  };
  let asking: Promise<void> | undefined;
  const authorize = async (): Promise<void> => {
    if (now() - authorizedAt < pluginLifeMs) return;
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    await asking;
  };
  await authorize();
  return {
    server: place.server,
    namespace: place.namespace,
    get ca() {
      return material.ca;
    },
    get agent() {
      return agent ?? createAgent(place.server, material, place.route);
    },
    headers: () => headers,
    authorize,
    close: () => agent?.destroy(),
  };
}

const asText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : Buffer.isBuffer(value) ? value.toString('utf8') : undefined;

async function parseConfig(text: string): Promise<Fields> {
  // A bundle gives a CommonJS package a default export only.
  const { default: yaml } = await import('yaml');
  let parsed: unknown;
  try {
    parsed = yaml.parse(text);
  } catch (cause) {
    throw new AppError('invalid_input', 'the kubeconfig is neither YAML nor JSON', {
      detail: { field: 'kubeconfig' },
      cause,
    });
  }
  if (!isFields(parsed)) throw refuse('kubeconfig', 'is empty or no mapping; want a kubeconfig file');
  return parsed;
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function entry(config: Fields, list: string, inner: string, wanted: string): Fields {
  const all = config[list];
  if (!Array.isArray(all)) throw refuse(list, 'is missing; want a list');
  const found = all.filter(isFields).find((candidate) => candidate.name === wanted);
  if (found === undefined) {
    const names = all.filter(isFields).map((candidate) => String(candidate.name));
    throw refuse(list, `has no entry named ${JSON.stringify(wanted)}; there are ${JSON.stringify(names)}`);
  }
  const body = found[inner];
  if (body === undefined || body === null) return {};
  if (!isFields(body)) throw refuse(`${list}[${wanted}].${inner}`, 'is no mapping');
  return body;
}

function optional(fields: Fields, key: string, field: string): string | undefined {
  const value = fields[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw refuse(field, `is a ${typeof value}, want a string`);
  return value;
}

function required(fields: Fields, key: string, field: string): string {
  const value = optional(fields, key, field);
  if (value === undefined || value === '') throw refuse(field, 'is missing');
  return value;
}

function pem(fields: Fields, key: string, at: string): string | undefined {
  const encoded = optional(fields, key, `${at}.${key}`);
  if (encoded === undefined || encoded === '') return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  if (!text.includes('-----BEGIN ')) throw refuse(`${at}.${key}`, 'is not base64 of a PEM block');
  return text;
}

function parseProxy(text: string | undefined, field: string): URL | undefined {
  if (text === undefined || text === '') return undefined;
  return parseServer(text, field);
}

/** What a request carries, apart from what a plugin adds. */
function credentials(user: Fields, at: string, now: () => number, directory = '.'): () => Record<string, string> {
  const as = impersonation(user, at);
  const file = optional(user, 'tokenFile', `${at}.tokenFile`);
  if (file !== undefined && file !== '') {
    const read = (): string => {
      try {
        return readFileSync(path.resolve(directory, file), 'utf8');
      } catch (cause) {
        throw new AppError('invalid_input', `kubeconfig field ${at}.tokenFile names ${file}, which cannot be read`, {
          detail: { field: `${at}.tokenFile`, value: file },
          cause,
        });
      }
    };
    const token = rotatingToken(read, now);
    return () => ({ authorization: `Bearer ${token()}`, ...as });
  }
  const headers = { ...inlineHeaders(user, at), ...as };
  return () => headers;
}

function inlineHeaders(user: Fields, at: string): Record<string, string> {
  const token = optional(user, 'token', `${at}.token`);
  if (token !== undefined && token !== '') return { authorization: `Bearer ${token}` };
  const login = optional(user, 'username', `${at}.username`);
  if (login === undefined || login === '') return {};
  const password = optional(user, 'password', `${at}.password`) ?? '';
  return { authorization: `Basic ${Buffer.from(`${login}:${password}`).toString('base64')}` };
}

function impersonation(user: Fields, at: string): Record<string, string> {
  const as = optional(user, 'as', `${at}.as`);
  if (as === undefined || as === '') return {};
  const unsupported = ['as-groups', 'as-uid', 'as-user-extra'].find((key) => key in user);
  if (unsupported !== undefined) {
    throw refuse(`${at}.${unsupported}`, 'is not supported; impersonate by `as` alone or use credentials of that user');
  }
  return { 'impersonate-user': as };
}

const definedString = <K extends string>(key: K, value: string | undefined): { [P in K]?: string } =>
  value === undefined ? {} : ({ [key]: value } as { [P in K]?: string });

const refuse = (field: string, problem: string): AppError =>
  new AppError('invalid_input', `kubeconfig field ${field} ${problem}`, { detail: { field } });
