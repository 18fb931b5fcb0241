/** Whether the tokens of one offloaded pod must be made, renewed or taken away (docs/design/offloading.md#when-are-tokens-made-and-renewed). Pure. */
import { sameContent } from '#shared/domain/json-equality.ts';
import type { Pod, Secret } from '#shared/domain/kube-object.ts';
import { annotation, isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import type { Pair } from '../kinds/kind.ts';
import { apiAccessOf, type HomeApi, type TokenRequest, tokenRequests, tokenSecretName } from '../model/api-access.ts';
import { fingerprint, withDigests } from '../model/digests.ts';
import { isOurs, pairLabels } from '../model/metadata.ts';

export interface Observed {
  readonly pod?: Pod | undefined;
  /** With digests in place of its data. */
  readonly secret?: Secret | undefined;
  readonly home?: HomeApi | undefined;
  readonly nowMs: number;
}

export type Action =
  | { readonly do: 'nothing' }
  | { readonly do: 'wait'; readonly afterMs: number }
  | { readonly do: 'issue'; readonly wishes: readonly TokenRequest[] }
  | { readonly do: 'delete'; readonly uid: string };

export interface Issued {
  readonly key: string;
  readonly token: string;
  /** RFC 3339. */
  readonly expires: string;
}

const nothing: Action = { do: 'nothing' };
/** Of its lifetime, how much of a token may pass before it is renewed. */
const renewAt = 0.8;

function wishesOf(pod: Pod | undefined, home: HomeApi | undefined): readonly TokenRequest[] {
  const phase = pod?.status?.phase;
  if (!pod || phase === 'Succeeded' || phase === 'Failed' || apiAccessOf(pod, home) !== 'token') return [];
  return tokenRequests(pod.spec);
}

export function decide({ pod, secret, home, nowMs }: Observed): Action {
  const wishes = wishesOf(pod, home);
  if (secret?.metadata.deletionTimestamp !== undefined) return nothing;
  const uid = secret?.metadata.uid ?? '';
  if (wishes.length === 0) return secret ? { do: 'delete', uid } : nothing;
  if (!secret) return { do: 'issue', wishes };
  // The pod of that token is no more: what it was bound to is gone, so the token is worth nothing.
  if (secret.metadata.annotations?.[annotation.tokenPodUid] !== pod?.metadata.uid) return { do: 'delete', uid };
  const intact = secret.metadata.annotations?.[isthmusAnnotation.reflected] === fingerprint(secret.data ?? {});
  const complete = sameContent(Object.keys(secret.data ?? {}).sort(), wishes.map(({ key }) => key).sort());
  const afterMs = renewalOf(secret, wishes) - nowMs;
  return intact && complete && afterMs > 0 ? { do: 'wait', afterMs } : { do: 'issue', wishes };
}

/** Unreadable: now. */
function renewalOf({ metadata }: Secret, wishes: readonly TokenRequest[]): number {
  const expires = Date.parse(metadata.annotations?.[annotation.tokenExpiration] ?? '');
  const shortest = Math.min(...wishes.map(({ seconds }) => seconds));
  return Number.isNaN(expires) ? 0 : expires - (1 - renewAt) * shortest * 1000;
}

export interface TokenContext extends Pair {
  readonly nodeName: string;
}

export function tokenSecret(pod: Pod, namespace: string, issued: readonly Issued[], context: TokenContext): Secret {
  const data = Object.fromEntries(issued.map(({ key, token }) => [key, token]));
  const expires = issued.map((one) => one.expires).toSorted((a, b) => Date.parse(a) - Date.parse(b))[0] ?? '';
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: tokenSecretName(pod.metadata.name),
      namespace,
      labels: {
        ...pairLabels(context),
        [label.nodeName]: context.nodeName,
        [label.serviceAccountName]: accountOf(pod),
      },
      annotations: {
        [annotation.tokenPodName]: pod.metadata.name,
        [annotation.tokenPodUid]: pod.metadata.uid ?? '',
        [annotation.tokenExpiration]: expires,
        [isthmusAnnotation.reflected]: fingerprint(withDigests({ data } as unknown as Secret, ['data']).data),
      },
    },
    type: 'Opaque',
    data,
  };
}

export const accountOf = (pod: Pod): string => pod.spec?.serviceAccountName ?? 'default';

export const isTokenSecret = (secret: Secret, pair: Pair): boolean =>
  isOurs(secret, pair) && secret.metadata.labels?.[label.serviceAccountName] !== undefined;
