/** Gives a consumer identity a certificate for the front door, and a new one when two thirds of its life are over. No signer of the cluster takes part. */
import { certifies, lifetimeOf, renewAtMs } from '#agent/pki/certificate.ts';
import { readCertificateRequest, type Subject } from '#agent/pki/certificate-request.ts';
import { issueDoorClient } from '#agent/pki/door-certificates.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import { secrets, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import type { Holder } from '../tenant/issued-certificate.ts';
import { ensureDoorAuthority } from './door-authority.ts';
import { buildDoorSecret, type DoorCredential, doorParams, readDoor } from './front-door.ts';
import { type CredentialIssue, type TokenDeps, waitsFor } from './issue-token.ts';
import { buildAccount, credentialSecretName } from './issued-token.ts';

export interface DoorDeps extends TokenDeps {
  readonly config: { readonly systemNamespace: string };
  readonly lifetimeSeconds: number;
}

/** `csrPem` must have been checked against `subject`; `apiServer`: the door as the consumer calls it. */
export async function ensureDoorCertificate(
  { api, clock, secretCache, config, lifetimeSeconds }: DoorDeps,
  holder: Holder,
  { subject, csrPem, apiServer }: { readonly subject: Subject; readonly csrPem: string; readonly apiServer: string },
  signal: AbortSignal,
): Promise<CredentialIssue> {
  const csr = toBase64(csrPem);
  const ref = { namespace: holder.namespace, name: credentialSecretName(holder) };
  const authority = await ensureDoorAuthority(api, config.systemNamespace, clock.now(), signal);
  const ca = toBase64(authority.certificate);
  const dueOf = (door: DoorCredential): number =>
    renewAtMs(fromBase64(door.certificate), door.issuedAtMs, lifetimeSeconds * 1000);
  /** What counts of it: what was issued for another request, by another authority or for another way there counts for nothing. */
  const current = (secret: Secret | undefined): DoorCredential | undefined => {
    const door = readDoor(secret);
    const isCurrent =
      door?.csr === csr &&
      door.ca === ca &&
      door.apiServer === apiServer &&
      certifies(fromBase64(door.certificate), subject);
    return isCurrent ? door : undefined;
  };
  const isDue = (door: DoorCredential | undefined): boolean => door === undefined || dueOf(door) <= clock.now();
  let door = current(secretCache.get(ref));
  // The cache may not have seen yet what the previous pass stored.
  const found = isDue(door) ? await api.get(secrets, ref, signal) : undefined;
  if (isDue(door)) door = current(found);
  if (door !== undefined && !isDue(door))
    return { state: 'issued', credential: doorParams(door), renewAtMs: dueOf(door) };
  if (found?.metadata.deletionTimestamp !== undefined)
    return { state: 'waiting', on: `Secret ${ref.name}, which is being deleted, to go` };
  try {
    await api.apply(serviceAccounts, buildAccount(holder), { fieldManager: fieldManager.agent }, signal);
    const life = { now: clock.now(), seconds: lifetimeSeconds };
    const made = issueDoorClient(authority, subject, readCertificateRequest(csrPem).publicKey, life);
    const isFormerGood = door !== undefined && lifetimeOf(fromBase64(door.certificate)).notAfterMs > clock.now();
    const next: DoorCredential = {
      ...{ csr, ca, apiServer, certificate: toBase64(made), issuedAtMs: clock.now() },
      ...(isFormerGood && { former: door?.certificate ?? '' }),
    };
    await api.apply(secrets, buildDoorSecret(holder, next), { fieldManager: fieldManager.agent }, signal);
    return { state: 'issued', credential: doorParams(next), renewAtMs: dueOf(next) };
  } catch (error) {
    const why = waitsFor(error, holder);
    if (why === undefined) throw error;
    return { state: 'waiting', on: why };
  }
}
