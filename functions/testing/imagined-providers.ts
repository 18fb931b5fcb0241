/** Identity providers of tests. */
import type { DocumentSource } from '#control/ports/document-source.ts';

/** Every URL is an identity provider, and nothing is sent anywhere. */
export const imaginedProviders: DocumentSource = {
  refusal: () => undefined,
  json: async (url) =>
    url.endsWith('/jwks')
      ? { keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'AAAA' }] }
      : { issuer: url.replace('/.well-known/openid-configuration', ''), jwks_uri: `${url}/jwks` },
};
