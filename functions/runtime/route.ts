/** What a route is: method, path, schemas, and the handler's types. */
import type * as z from 'zod';
import type { AgentCaller, Caller, OperatorCaller, Permission } from '#control/access/caller.ts';
import type { SignedRequest } from '#control/model/cluster.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';

export interface Reply {
  readonly status?: number;
  readonly body?: unknown;
  /** Instead of `body`: what is no JSON. */
  readonly text?: { readonly type: string; readonly content: string };
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * `key`: a member of a tenant, by API key or by a token of an identity provider. `operator`: an operator of the deployment. `agent`: signed with the
 * enrolled cluster key. `enroll`: signed, but not yet enrolled.
 */
export type Auth = 'none' | 'key' | 'operator' | 'agent' | 'enroll';

export interface Deprecation {
  /** RFC 3339: since when there is something better. */
  readonly since: string;
  /** RFC 3339: from when on it answers 404; at least a year later. */
  readonly until: string;
  /** What to use, in a few words. */
  readonly instead: string;
}

export interface Route<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** `/v1/clusters/{cluster}`, as the gateway writes it. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly auth: Auth;
  /** Enforced here before anything is looked at, and by the use case itself. Absent for `key`: every member. */
  readonly permission?: Permission;
  readonly pathParameters?: P;
  readonly query?: Q;
  readonly body?: B;
  /** Schema of the body by status. */
  readonly answers: Readonly<
    Record<
      number,
      {
        readonly description: string;
        readonly body?: z.ZodType;
        readonly type?: string;
        /** Comes with the path of what the answer is about. */
        readonly location?: true;
      }
    >
  >;
  /** Codes of its use case. Those that follow from the other fields are added by `functions/refusals.ts`. */
  readonly refusals?: readonly ErrorCode[];
  /** POST with an API key: absent means the answer is kept for repeats; `secret` means it must not be stored. */
  readonly answerHolds?: 'secret';
  /** A change that is also taken while its tenant is being deleted. */
  readonly whileDeleting?: true;
  /** Heeds If-Match. */
  readonly conditional?: true;
  /** The operation goes away: answers say so (RFC 9745, RFC 8594), and so does the OpenAPI document. */
  readonly deprecated?: Deprecation;
  /** Of a body, in bytes; default 256 KiB, for agents what the cloud takes. */
  readonly maxBodyBytes?: number;
}

export type AnyRoute = Route<z.ZodType, z.ZodType, z.ZodType>;

export type AnyPrincipal = {
  readonly caller?: Caller;
  readonly operator?: OperatorCaller;
  readonly agent?: AgentCaller;
  readonly signed?: SignedRequest;
};
