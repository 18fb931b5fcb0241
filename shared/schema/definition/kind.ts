/** How a custom kind is declared: its zod schemas, and beside them everything else that the CRD needs. The result is the kind's handle. */
import type * as z from 'zod';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  /** Above 0: only in `kubectl get -o wide`. */
  readonly priority?: number;
  readonly description?: string;
}

/** One CEL rule. `fieldPath` (relative to where the rule stands) is what the API server names in the refusal. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired';
}

/** The writer of a kind, in words for the reference page. */
interface Writers {
  readonly object: string;
  readonly status?: string;
}

export interface KindDefinition<T extends KubeObject = KubeObject> extends ResourceType<T> {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly description: string;
  readonly writers: Writers;
  readonly columns: readonly PrinterColumn[];
  /** CEL rules about the whole object; rules about a field stand in its `.meta`. */
  readonly rules: readonly CelRule[];
  readonly spec: z.ZodType;
  /** Absent: the kind has no status and no status subresource. */
  readonly status?: z.ZodType;
  /** `required`: an object without spec is refused. `{}`: the API server fills in an empty one. */
  readonly specPresence: 'required' | 'defaulted';
}

type Declared<T extends KubeObject> = Omit<KindDefinition<T>, 'singular' | 'rules' | 'shortNames' | 'specPresence'> &
  Partial<Pick<KindDefinition<T>, 'rules' | 'shortNames' | 'specPresence'>>;

/** `specPresence` defaults to `required`. */
export function defineKind<T extends KubeObject>(declared: Declared<T>): KindDefinition<T> {
  return { singular: declared.kind.toLowerCase(), shortNames: [], rules: [], specPresence: 'required', ...declared };
}

export const ageColumn: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

/** For `.meta(cel(...))` on a field or object. */
export const cel = (...rules: readonly CelRule[]): { 'x-kubernetes-validations': readonly CelRule[] } => ({
  'x-kubernetes-validations': rules,
});

/** For `.meta(...)` of a required field that may never change once set. */
export const immutable = (field: string): ReturnType<typeof cel> =>
  cel({ rule: 'self == oldSelf', message: `${field} is immutable: delete the object and create it again` });
