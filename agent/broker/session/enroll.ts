/** Enrolment: trades the one-use join token for the broker's acquaintance with this cluster's key, and remembers it as a BrokerLink. */
import type { KeyObject } from 'node:crypto';
import { createPublicKey } from 'node:crypto';
import type { Cluster } from '#kube/model/types.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Log } from '#shared/ports/log.ts';
import { type BrokerLink, brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { Ed25519Jwk, EnrollResponse, JoinToken } from '#shared/schema/protocol/agent-identity.ts';
import { type ClusterFacts, DesiredAnswer } from '#shared/schema/protocol/agent-protocol.ts';
import { brokerCaByHash } from './ca-by-hash.ts';
import { type BrokerClient, type BrokerIdentity, createBrokerClient } from './signed-client.ts';

/** The one BrokerLink that this agent keeps. */
export const brokerLinkName = 'broker';
export const joinSecretName = 'isthmus-join';
const tokenPrefix = 'isthmus1.';

export interface EnrollDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly systemNamespace: string;
  readonly privateKey: KeyObject;
  /** base64: by the key before this one, which the broker may know. */
  readonly succession?: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

function parseJoinToken(text: string): JoinToken {
  const refuse = (why: string) =>
    new AppError(
      'invalid_input',
      `the join token ${why}; a token looks like ${tokenPrefix}… and comes from \`isthmus join\``,
      { detail: { field: 'token' } },
    );
  const token = text.trim();
  if (!token.startsWith(tokenPrefix)) throw refuse('has an unknown form');
  try {
    return JoinToken.parse(JSON.parse(Buffer.from(token.slice(tokenPrefix.length), 'base64url').toString('utf8')));
  } catch {
    throw refuse('cannot be read');
  }
}

/**
 * The identity to talk to the broker with. A join Secret, when there is one, wins over an existing link: that is how a cluster moves to
 * another broker. It is deleted once used. Undefined: never joined.
 */
export async function ensureEnrolled(
  deps: EnrollDeps,
  facts: () => ClusterFacts,
  signal: AbortSignal,
): Promise<BrokerIdentity | undefined> {
  const { cluster, systemNamespace, log } = deps;
  const ref = { namespace: systemNamespace, name: joinSecretName };
  const [secret, link] = await Promise.all([
    cluster.api.get(secrets, ref, signal),
    cluster.api.get(brokerLinks, { name: brokerLinkName }, signal),
  ]);
  const text = secret?.data?.token;
  if (text === undefined) return link && identityOf(deps, link);
  const token = parseJoinToken(Buffer.from(text, 'base64').toString('utf8'));
  if (token.clusterId !== deps.clusterId) {
    throw new AppError(
      'invalid_input',
      `the join token is for cluster ${token.clusterId}, this cluster is ${deps.clusterId}`,
      { detail: { field: 'token.clusterId' } },
    );
  }
  const identity = await identityFromToken(deps, token);
  const client = createBrokerClient(identity, deps);
  try {
    await enroll(deps, client, token, facts(), signal);
  } finally {
    client.close();
  }
  await cluster.api.apply(brokerLinks, buildLink(identity), { fieldManager: fieldManager.agent }, signal);
  await cluster.api.delete(secrets, ref, {}, signal);
  log.info('enrolled at the broker', { broker: identity.url, tenant: identity.tenant });
  return identity;
}

async function identityFromToken(deps: EnrollDeps, token: JoinToken): Promise<BrokerIdentity> {
  const ca = token.caHash === undefined ? undefined : await brokerCaByHash(new URL(token.url), token.caHash);
  return {
    url: token.url.replace(/\/+$/, ''),
    tenant: token.tenant,
    clusterId: deps.clusterId,
    privateKey: deps.privateKey,
    ...(ca === undefined ? {} : { ca }),
  };
}

async function enroll(
  deps: EnrollDeps,
  client: BrokerClient,
  token: JoinToken,
  facts: ClusterFacts,
  signal: AbortSignal,
): Promise<void> {
  const publicKey = Ed25519Jwk.parse(createPublicKey(deps.privateKey).export({ format: 'jwk' }));
  const body = {
    clusterId: deps.clusterId,
    token: token.secret,
    publicKey,
    facts,
    ...(deps.succession === undefined ? {} : { succession: deps.succession }),
  };
  try {
    await client.call('POST', '/v1/agent/enroll', body, EnrollResponse, signal);
  } catch (error) {
    if (codeOf(error) !== 'join_token_used') throw error;
    // Killed between the broker's answer and our note of it: if the broker knows our key, the token was spent by us.
    await client.call('GET', '/v1/agent/desired?after=0', undefined, DesiredAnswer, signal).catch(() => {
      throw error;
    });
  }
}

const identityOf = (deps: EnrollDeps, link: BrokerLink): BrokerIdentity => ({
  url: link.spec.url,
  tenant: link.spec.tenant,
  clusterId: deps.clusterId,
  privateKey: deps.privateKey,
  ...(link.spec.caBundle === undefined ? {} : { ca: link.spec.caBundle }),
});

const buildLink = (identity: BrokerIdentity) => ({
  apiVersion: 'isthmus.dev/v1alpha1' as const,
  kind: 'BrokerLink' as const,
  metadata: { name: brokerLinkName },
  spec: {
    url: identity.url,
    tenant: identity.tenant,
    clusterId: identity.clusterId,
    ...(identity.ca === undefined ? {} : { caBundle: identity.ca }),
  },
});
