/** The key pair of the front door's certificate authority, in a Secret that all replicas share. */
import { createDoorAuthority, type DoorAuthority, isAuthority } from '#agent/pki/door-certificates.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';

const doorAuthoritySecret = 'isthmus-front-door';

/** Makes it where there is none. Of two that make one at once, one wins and both use its. */
export async function ensureDoorAuthority(
  api: KubeApi,
  namespace: string,
  now: number,
  signal: AbortSignal,
): Promise<DoorAuthority> {
  const ref = { namespace, name: doorAuthoritySecret };
  const found = await api.get(secrets, ref, signal);
  const { 'tls.crt': certificate, 'tls.key': privateKey } = found?.data ?? {};
  const have = {
    ...(certificate && { certificate: fromBase64(certificate) }),
    ...(privateKey && { privateKey: fromBase64(privateKey) }),
  };
  if (isAuthority(have, now)) return have as DoorAuthority;
  const made = createDoorAuthority(now);
  const data = { 'tls.crt': toBase64(made.certificate), 'tls.key': toBase64(made.privateKey) };
  const metadata = { ...ref, labels: { [label.managed]: 'true' } };
  try {
    if (found === undefined)
      await api.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data }, {}, signal);
    else {
      const { resourceVersion } = found.metadata;
      await api.mergePatch(secrets, ref, { metadata: { labels: metadata.labels, resourceVersion }, data }, {}, signal);
    }
    return made;
  } catch (error) {
    const code = codeOf(error);
    if (code !== 'kube_conflict' && code !== 'kube_already_exists') throw error;
    return await ensureDoorAuthority(api, namespace, now, signal);
  }
}
