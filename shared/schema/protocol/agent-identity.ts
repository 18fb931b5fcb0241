/** How a cluster joins and what its agent proves itself by: the join token, enrolment with a key, and the claims that sign every request from then on. */
import * as z from 'zod';
import { ClusterFacts, ClusterId } from './agent-protocol.ts';

/** The join token as a user sees it is `isthmus1.` + base64url of this JSON. */
export const JoinToken = z.object({
  url: z.url(),
  tenant: z.string(),
  clusterId: ClusterId,
  /** Hex SHA-256 of the broker CA certificate's DER; absent when the broker's certificate is publicly trusted. */
  caHash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  secret: z.string(),
});
export type JoinToken = z.infer<typeof JoinToken>;

/** A JWK of an Ed25519 public key. */
export const Ed25519Jwk = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() });

export const EnrollRequest = z.object({
  clusterId: ClusterId,
  token: z.string().describe('The one-use secret part of the join token.'),
  publicKey: Ed25519Jwk,
  facts: ClusterFacts,
  succession: z
    .string()
    .max(1024)
    .optional()
    .describe('base64: signature by the key that the cluster had before, if it had one.'),
});
export type EnrollRequest = z.infer<typeof EnrollRequest>;

export const EnrollResponse = z.object({
  clusterId: ClusterId,
  tenant: z.string(),
  protocolVersion: z.int(),
  heartbeatSeconds: z.int().describe('How often to be heard of when nothing changes.'),
});
export type EnrollResponse = z.infer<typeof EnrollResponse>;

/** Claims of the EdDSA JWT in `Authorization: Bearer`, signed with the cluster key; header `kid` is the cluster's broker id or `enroll`. */
export const AgentClaims = z.object({
  iss: z.string().describe('The cluster ID.'),
  sub: z.string().describe('`<tenant>/<clusterId>`'),
  aud: z.string().describe('The broker URL, without a trailing slash.'),
  iat: z.int(),
  exp: z.int().describe('At most iat + 60.'),
  jti: z.string().min(16).describe('Single use.'),
  htm: z.string(),
  htp: z.string().describe('Path of the request.'),
  bsh: z.string().describe('base64url SHA-256 of the body; of the empty string when there is none.'),
  ver: z.int().min(1).optional().describe('Protocol version of the agent. Absent: 1.'),
});
export type AgentClaims = z.infer<typeof AgentClaims>;
