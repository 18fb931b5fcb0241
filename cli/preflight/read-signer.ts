/** Reads what a cluster tells of its signer of client certificates. Asks it nothing: a request would be an object. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { certificateSigningRequests, pods, secrets } from '#shared/domain/core-kinds.ts';
import type { CredentialSetting } from '#shared/domain/credential-setting.ts';
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

export async function readSigner(kube: KubeClient, setting: CredentialSetting): Promise<SignerFacts> {
  const [keys, requests = [], system = []] = await Promise.all([
    readable(kube.get(secrets, { namespace: systemNamespace, name: authenticationKeysSecret })),
    readable(kube.list(certificateSigningRequests)),
    readable(kube.list(pods, undefined, 'kube-system')),
  ]);
  const { [isthmusAnnotation.credentials]: kind, [isthmusAnnotation.credentialsReason]: reason = '' } =
    keys?.metadata.annotations ?? {};
  const signed = requests.find(
    ({ spec, status }) => spec.signerName === clientSigner && (status?.certificate ?? '') !== '',
  );
  const manager = system
    .filter(({ metadata }) => metadata.name.startsWith('kube-controller-manager'))
    .flatMap(({ spec }) => spec?.containers ?? [])[0];
  return {
    setting,
    ...(kind !== undefined && { found: { kind, reason } }),
    ...(signed !== undefined && { signed: signed.metadata.name }),
    ...(manager !== undefined && { controllerManager: [...(manager.command ?? []), ...(manager.args ?? [])] }),
  };
}
