/** Where the local broker listens, and under which names it can be reached. */
import { isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { AppError } from '#shared/errors/app-error.ts';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** `HOST:PORT`, `[IPv6]:PORT`, `:PORT` or `PORT`; port 0 lets the system choose. */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[([^\]]+)\]:|([^:[\]]*):)?(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  const host = match?.[1] ?? (match?.[2] || '0.0.0.0');
  if (!match || port > 65_535 || (match[1] !== undefined && isIP(match[1]) !== 6)) {
    throw new AppError(
      'invalid_input',
      `the listen address is ${JSON.stringify(text)}, accepted are HOST:PORT, [IPv6]:PORT and :PORT, for example 0.0.0.0:8443`,
      { detail: { field: 'listen', value: text } },
    );
  }
  return { host, port };
}

const isWildcard = (host: string): boolean => host === '0.0.0.0' || host === '::';

const addresses = (): { readonly address: string; readonly internal: boolean }[] =>
  Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ scopeid }) => scopeid === undefined || scopeid === 0)
    .map(({ address, internal }) => ({ address, internal }));

const urlOf = (host: string, port: number): string => `https://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;

/** The address for agents when none is configured: the address listened on, or else this machine's first outward one. */
export function defaultPublicUrl(host: string, port: number): string {
  if (!isWildcard(host)) return urlOf(host, port);
  const outward = addresses().find(({ address, internal }) => !internal && isIP(address) === 4);
  return urlOf(outward?.address ?? '127.0.0.1', port);
}

/** Without a trailing slash: it is the audience of what agents sign. */
export function parsePublicUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:' || url.search !== '' || url.hash !== '') {
    throw new AppError(
      'invalid_input',
      `the public URL is ${JSON.stringify(text)}, accepted is an https URL that agents and users reach the broker by, for example https://broker.example.com:8443`,
      { detail: { field: 'public-url', value: text } },
    );
  }
  return url.href.replace(/\/+$/, '');
}

/** All names for the serving certificate. */
export function servingNames(host: string, publicUrl: string | undefined): string[] {
  const publicHost = publicUrl === undefined ? [] : [new URL(publicUrl).hostname.replace(/^\[|\]$/g, '')];
  const own = isWildcard(host) ? [] : [host];
  const all = [
    ...publicHost,
    ...own,
    'localhost',
    hostname(),
    '127.0.0.1',
    '::1',
    ...addresses().map((a) => a.address),
  ];
  return [...new Set(all.filter((name) => name !== '').map((name) => name.toLowerCase()))];
}
