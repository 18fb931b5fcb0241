/** A real OpenID provider (oidc-provider) in this process, on loopback: what bearer tokens are tested against. */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface IdentityProvider {
  readonly url: string;
  /** How often its keys were fetched. */
  readonly keyFetches: () => number;
  /** An access token, by client credentials: its subject is the client. */
  token(
    client: string,
    options?: { readonly audience?: string; readonly claims?: Readonly<Record<string, unknown>> },
  ): Promise<string>;
  /** New signing keys, as after an incident. */
  rotate(): Promise<void>;
  close(): Promise<void>;
}

type Jwk = Record<string, unknown>;
const newKey = (): Jwk => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'ES256', use: 'sig' } as Jwk;
};

interface ProviderOptions {
  /** Public clients with the device flow and refresh tokens. */
  readonly deviceClients?: readonly string[];
}

export async function startIdentityProvider(
  clients: readonly string[],
  lifeSeconds = 600,
  { deviceClients = [] }: ProviderOptions = {},
): Promise<IdentityProvider> {
  // Its package has no types.
  const name: string = 'oidc-provider';
  const { default: Provider } = (await import(name)) as { default: ProviderClass };
  let handle: RequestListener = () => undefined;
  let fetches = 0;
  const server = createServer((request, response) => {
    if (request.url === '/jwks') fetches += 1;
    handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let claims: Readonly<Record<string, unknown>> = {};

  const start = (): void => {
    const provider = new Provider(url, {
      jwks: { keys: [newKey()] },
      clients: [
        ...clients.map((client) => ({
          client_id: client,
          client_secret: `secret of ${client}`,
          grant_types: ['client_credentials'],
          id_token_signed_response_alg: 'ES256',
          redirect_uris: [],
          response_types: [],
        })),
        ...deviceClients.map((client) => ({
          client_id: client,
          token_endpoint_auth_method: 'none',
          grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
          id_token_signed_response_alg: 'ES256',
          redirect_uris: [],
          response_types: [],
        })),
      ],
      cookies: { keys: ['test'] },
      extraTokenClaims: () => claims,
      features: {
        devInteractions: { enabled: deviceClients.length > 0 },
        deviceFlow: { enabled: deviceClients.length > 0 },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_context: unknown, resource: string) => ({
            scope: 'api',
            audience: resource,
            accessTokenFormat: 'jwt',
            accessTokenTTL: lifeSeconds,
            jwt: { sign: { alg: 'ES256' } },
          }),
        },
      },
    });
    handle = provider.callback();
  };
  start();

  return {
    url,
    keyFetches: () => fetches,
    async token(client, { audience = 'https://broker.test', claims: extra = {} } = {}) {
      claims = extra;
      const response = await fetch(`${url}/token`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${client}:${encodeURIComponent(`secret of ${client}`)}`).toString('base64')}`,
        },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: audience, scope: 'api' }),
      });
      const answer = (await response.json()) as { access_token?: string };
      if (answer.access_token === undefined) throw new Error(`no token: ${JSON.stringify(answer)}`);
      return answer.access_token;
    },
    rotate: async () => start(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface ProviderClass {
  new (issuer: string, configuration: object): { callback(): RequestListener };
}
