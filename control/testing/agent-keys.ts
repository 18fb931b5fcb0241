/** An agent's key for tests, and requests signed with it as `agent/broker` does. */
import { createHash, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import type { AgentClaims } from '#shared/schema/protocol/agent-identity.ts';
import type { PublicJwk, SignedRequest } from '../model/cluster.ts';

export interface AgentKeys {
  readonly privateKey: KeyObject;
  readonly publicKey: PublicJwk;
}

export function newAgentKeys(): AgentKeys {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return { privateKey, publicKey: publicKey.export({ format: 'jwk' }) as unknown as PublicJwk };
}

export interface ToSign {
  readonly keys: AgentKeys;
  readonly tenant: string;
  readonly clusterId: string;
  readonly audience: string;
  readonly now: number;
  readonly method?: string;
  readonly path?: string;
  readonly body?: string;
  /** Replaces claims, to make requests that must be refused. */
  readonly claims?: Partial<AgentClaims>;
}

export async function signRequest(input: ToSign): Promise<SignedRequest> {
  const { keys, tenant, clusterId, audience, now, method = 'POST', path = '/v1/agent/observed', body = '{}' } = input;
  const iat = Math.floor(now / 1_000);
  const claims: AgentClaims = {
    iss: clusterId,
    sub: `${tenant}/${clusterId}`,
    aud: audience,
    iat,
    exp: iat + 60,
    jti: randomUUID(),
    htm: method,
    htp: path,
    bsh: createHash('sha256').update(body).digest('base64url'),
    ...input.claims,
  };
  const token = await new SignJWT({ ...claims }).setProtectedHeader({ alg: 'EdDSA' }).sign(keys.privateKey);
  return {
    authorization: `Bearer ${token}`,
    method,
    path,
    body: Buffer.from(body),
    from: '192.0.2.7',
    requestId: 'rq-test',
  };
}
