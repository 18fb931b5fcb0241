/** Asks the API server whether it would let a user do something: a SubjectAccessReview. */
import type { KubeApi } from '../model/types.ts';

/** As an authenticator describes the caller. */
export interface ReviewedUser {
  readonly user: string;
  readonly groups: readonly string[];
  readonly uid?: string | undefined;
  /** What the authenticator says besides, such as what a token is limited to. */
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

export interface ResourceAttributes {
  readonly verb: string;
  readonly resource: string;
  readonly group?: string;
  readonly version?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** Of an object, or of a path that is none. */
export type AccessAttributes =
  | { readonly resourceAttributes: ResourceAttributes }
  | { readonly nonResourceAttributes: { readonly path: string; readonly verb: string } };

/** Fails as a request to the API server does. */
export const isAllowed = (
  api: Pick<KubeApi, 'postPath'>,
  user: ReviewedUser,
  resourceAttributes: ResourceAttributes,
  signal?: AbortSignal,
): Promise<boolean> => reviewAccess(api, user, { resourceAttributes }, signal);

/** Fails as a request to the API server does. */
export async function reviewAccess(
  api: Pick<KubeApi, 'postPath'>,
  user: ReviewedUser,
  attributes: AccessAttributes,
  signal?: AbortSignal,
): Promise<boolean> {
  const spec = { ...user, ...attributes };
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  const { status } = await api.postPath<{ readonly status?: { readonly allowed?: boolean } }>(path, review, signal);
  return status?.allowed === true;
}
