/** When the credentials for a provider end, and what renews them once they have: by then nothing here can ask the provider any more. Pure. */
import { lifetimeOf } from '#agent/pki/certificate.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import { readSealedToken } from '#agent/pki/sealed-token.ts';
import { timestamp } from '#kube/writes/conditions.ts';

/** From YAML or JSON, without parsing either. Undefined: there is neither client certificate nor sealed token in it, or none that can be read. */
export function credentialsEndMs(kubeconfig: string): number | undefined {
  const [, sealed] = /["']?\bsealed["']?\s*:\s*["']?([\w.-]+)/.exec(kubeconfig) ?? [];
  if (sealed !== undefined) return readSealedToken(sealed)?.endMs;
  const [, data] = /["']?\bclient-certificate-data["']?\s*:\s*["']?([\w+/=]+)/.exec(kubeconfig) ?? [];
  if (data === undefined) return undefined;
  try {
    return lifetimeOf(fromBase64(data)).notAfterMs;
  } catch {
    return undefined;
  }
}

export interface Expiry {
  readonly peer: string;
  readonly endMs: number;
  /** By an Identity, which a broker or liqoctl brought; otherwise the kubeconfig came from manifests. */
  readonly hasIdentity: boolean;
}

export function expiryMessage({ peer, endMs, hasIdentity }: Expiry): string {
  const ended = `our credentials for ${peer} ended at ${timestamp(endMs)}`;
  return hasIdentity
    ? `${ended}; a broker or the link to ${peer} brings the next one by itself, without both: liqoctl authenticate --kubeconfig <this cluster> --remote-kubeconfig <${peer}>`
    : `${ended}; they came from manifests: isthmus generate peering --consumer <this cluster> --provider <${peer}>, and apply both folders`;
}
