/** Reads what a cluster tells of its signer of client certificates. Asks it nothing: a request would be an object. */
import { type KubeClient, smallObjects } from '#cli/cluster/open.ts';
import {
  type CertificateSigningRequest,
  certificateSigningRequests,
  pods,
  secrets,
} from '#shared/domain/core-kinds.ts';
import type { CredentialSetting } from '#shared/domain/credential-setting.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { authenticationKeysSecret, isthmusAnnotation, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { SignerFacts } from './facts.ts';

const clientSigner = 'kubernetes.io/kube-apiserver-client';

/** What may not be read tells nothing. */
const readable = <T>(read: Promise<T>): Promise<T | undefined> =>
  read.catch((error: unknown) => {
    if (codeOf(error) !== 'kube_forbidden') throw error;
    return undefined;
  });

const signedName = ({ metadata, spec, status }: CertificateSigningRequest): string | undefined =>
  spec.signerName === clientSigner && (status?.certificate ?? '') !== '' ? metadata.name : undefined;

/** Its command line. */
function controllerManager({ metadata, spec }: Pod): string[] | undefined {
  const [first] = metadata.name.startsWith('kube-controller-manager') ? (spec?.containers ?? []) : [];
  return first && [...(first.command ?? []), ...(first.args ?? [])];
}

export async function readSigner(kube: KubeClient, setting: CredentialSetting): Promise<SignerFacts> {
  const [keys, [signed] = [], [manager] = []] = await Promise.all([
    readable(kube.get(secrets, { namespace: systemNamespace, name: authenticationKeysSecret })),
    readable(kube.collect(certificateSigningRequests, signedName, smallObjects)),
    readable(kube.collect(pods, controllerManager, { namespace: 'kube-system', ...smallObjects })),
  ]);
  const { [isthmusAnnotation.credentials]: kind, [isthmusAnnotation.credentialsReason]: reason = '' } =
    keys?.metadata.annotations ?? {};
  return {
    setting,
    ...(kind !== undefined && { found: { kind, reason } }),
    ...(signed !== undefined && { signed }),
    ...(manager !== undefined && { controllerManager: manager }),
  };
}
