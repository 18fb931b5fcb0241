/** AdmissionReview v1 at the edge: what a hook is asked, and what it may answer. */
import * as z from 'zod';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { codes, type ErrorCode } from '#shared/errors/codes.ts';

const ObjectSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    // Absent in the mutating phase of objects with generateName.
    name: z.string().optional(),
    labels: z.record(z.string(), z.string()).nullish(),
    annotations: z.record(z.string(), z.string()).nullish(),
  }),
});

const ReviewSchema = z.looseObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: z.looseObject({
    uid: z.string().min(1),
    operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
    name: z.string().optional(),
    namespace: z.string().optional(),
    dryRun: z.boolean().optional(),
    userInfo: z.looseObject({ username: z.string().optional(), groups: z.array(z.string()).optional() }),
    object: ObjectSchema.nullish(),
    oldObject: ObjectSchema.nullish(),
    options: z
      .looseObject({ propagationPolicy: z.string().nullish(), orphanDependents: z.boolean().nullish() })
      .nullish(),
  }),
});

/** One question of the API server, decoded. */
export interface Review<T extends KubeObject = KubeObject> {
  readonly uid: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  /** '' where the API server has not generated the name yet. */
  readonly name: string;
  readonly namespace: string;
  readonly dryRun: boolean;
  readonly user: { readonly name: string; readonly groups: readonly string[] };
  /** The object as it shall be; absent on DELETE. Only its metadata has been checked: hooks parse what they read of the rest. */
  readonly object?: T;
  readonly before?: T;
  /** A deletion that asks for what the object owns to stay. */
  readonly isOrphaning?: boolean;
}

export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}

export type Verdict =
  | { readonly allowed: true; readonly patch?: readonly PatchOperation[]; readonly warnings?: readonly string[] }
  | { readonly allowed: false; readonly code: ErrorCode; readonly message: string };

export const allow: Verdict = { allowed: true };
/** `message`: what is wrong with which field, and what to do. */
export const deny = (code: ErrorCode, message: string): Verdict => ({ allowed: false, code, message });

export function parseReview(body: string): Review {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch (cause) {
    throw new AppError('malformed_request', 'the body is not JSON: send an AdmissionReview of admission.k8s.io/v1', {
      cause,
    });
  }
  const parsed = ReviewSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const message = `${issue?.path.join('.') || 'body'}: ${issue?.message}; send an AdmissionReview of admission.k8s.io/v1`;
    throw new AppError('malformed_request', message);
  }
  const {
    uid,
    operation,
    name = '',
    namespace = '',
    dryRun = false,
    userInfo,
    object,
    oldObject,
    options,
  } = parsed.data.request;
  return {
    uid,
    operation,
    name: name || (object?.metadata.name ?? ''),
    namespace,
    dryRun,
    user: { name: userInfo.username ?? '', groups: userInfo.groups ?? [] },
    ...(object && { object: object as unknown as KubeObject }),
    ...(oldObject && { before: oldObject as unknown as KubeObject }),
    // The second is what clients of before 2017 send.
    ...((options?.propagationPolicy === 'Orphan' || options?.orphanDependents) && { isOrphaning: true }),
  };
}

/** The message ends with the code word, so that people and programs can look it up. */
export function answer(uid: string, verdict: Verdict): unknown {
  const response = verdict.allowed
    ? {
        uid,
        allowed: true,
        ...(verdict.warnings?.length && { warnings: verdict.warnings }),
        ...(verdict.patch?.length && {
          patchType: 'JSONPatch',
          patch: Buffer.from(JSON.stringify(verdict.patch)).toString('base64'),
        }),
      }
    : {
        uid,
        allowed: false,
        status: {
          status: 'Failure',
          code: codes[verdict.code].http,
          reason: reasonOf(verdict.code),
          message: `${verdict.message} (${verdict.code})`,
        },
      };
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response };
}

/** The reasons that clients of Kubernetes know. */
function reasonOf(code: ErrorCode): string {
  switch (codes[code].http) {
    case 403:
      return 'Forbidden';
    case 409:
      return 'Conflict';
    case 422:
      return 'Invalid';
    case 503:
      return 'ServiceUnavailable';
    default:
      return 'BadRequest';
  }
}

/** One segment of a JSON pointer. */
const pointer = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

/** Sets one label, with or without existing labels. Empty when the label already has this value. */
export function labelPatch(object: KubeObject | undefined, key: string, value: string): PatchOperation[] {
  const labels = object?.metadata.labels;
  if (!labels) return [{ op: 'add', path: '/metadata/labels', value: { [key]: value } }];
  return labels[key] === value ? [] : [{ op: 'add', path: `/metadata/labels/${pointer(key)}`, value }];
}
