/** Where the peer may be reached: from the gateway object to addresses that WireGuard takes. Names are resolved again and again. */
import { lookup } from 'node:dns/promises';
import { isIPv4 } from 'node:net';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { isthmusNetworkAnnotation } from '#shared/domain/network-keys.ts';
import type { EndpointStatus } from '#shared/schema/liqo/gateway-endpoint.ts';

/** All addresses of a host name; may be empty. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** IPv4 addresses as this machine's resolver finds them. */
export const resolveHost: Resolve = async (host) =>
  (await lookup(host, { all: true, family: 4 })).map(({ address }) => address).sort();

/**
 * `host:port` texts in order of preference, without repetitions: a client's endpoint first, then what the annotation says. What is no such
 * text is left out: the annotation is the peer's, and one odd entry must not cost the others.
 */
export function candidateTexts(gateway: KubeObject, endpoint?: EndpointStatus): readonly string[] {
  const port = endpoint?.port ?? endpoint?.ports?.[0];
  const direct = port === undefined ? [] : (endpoint?.addresses ?? []).map((address) => `${address}:${port}`);
  return [...new Set([...direct, ...announced(gateway)])].filter((text) => splitEndpoint(text) !== undefined);
}

function announced({ metadata }: KubeObject): readonly string[] {
  const text = metadata.annotations?.[isthmusNetworkAnnotation.peerCandidates];
  if (text === undefined) return [];
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
  } catch {
    return [];
  }
}

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

function splitEndpoint(text: string): Endpoint | undefined {
  const [, host = '', digits = ''] = /^([a-zA-Z0-9._-]{1,253}):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  return host === '' || port < 1 || port > 65_535 ? undefined : { host, port };
}

/** A name that cannot be resolved now stands for nothing. */
export async function resolveCandidates(texts: readonly string[], resolve: Resolve): Promise<readonly string[]> {
  const found = await Promise.all(
    texts.map(async (text) => {
      const endpoint = splitEndpoint(text);
      if (endpoint === undefined) return [];
      if (isIPv4(endpoint.host)) return [text];
      const addresses = await resolve(endpoint.host).catch(() => []);
      return addresses.map((address) => `${address}:${endpoint.port}`);
    }),
  );
  return [...new Set(found.flat())];
}
