/**
 * Takes secrets, and what may be one, out of objects and logs. By structure first: what people write freely (environment, arguments,
 * annotations, data) goes whole. Then by name of the field, then by the form of the value. Pure.
 */
import type { KubeObject } from '#shared/domain/kube-object.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Fields that go whole, wherever they stand: free text of users, and credentials of every kind. */
const dropped = new Set([
  'data',
  'binaryData',
  'stringData',
  'env',
  'envFrom',
  'args',
  'command',
  'annotations',
  'managedFields',
  'authParams',
  'csr',
  'signature',
  'publicKey',
  'caBundle',
  'signedCRT',
  'proposedCSR',
  'startupProbe',
  'livenessProbe',
  'readinessProbe',
  'lifecycle',
  'imagePullSecrets',
]);
/** A text under such a name goes, in every form. */
const secretName =
  /token|password|passwd|secret|credential|kubeconfig|private|api-?key|authorization|bearer|cookie|nonce|sealed/i;
/** Names of objects, not secrets. */
const harmlessName = new Set(['name', 'namespace', 'kind', 'secretName']);

const forms: readonly RegExp[] = [
  /-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(-----END [A-Z0-9 ]+-----|$)/g,
  // JSON Web Tokens, also sealed ones.
  /\beyJ[\w-]+(\.[\w-]*){1,4}/g,
  /\b(Bearer|Basic)\s+[\w.~+/=-]+/gi,
  // Credentials within a URL.
  /(?<=\/\/)[^\s/@:]*:[^\s/@]+(?=@)/g,
  // What is said to be one.
  /(?<=(?:token|password|passwd|secret|api[-_]?key|authorization|client-key-data|client-certificate-data|cookie)["']?\s*[:=]\s*["']?)[^\s"',;}]{6,}/gi,
  // Keys of brokers and agents, and codes of invitations.
  /\b(iso|isk|isj|isi|jt|inv)_[\w-]{8,}/g,
  // Keys, hashes of tokens and other long random texts; names of objects are lower case with dashes, paths too.
  /(?<!\w)(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9]{32,}(?!\w)/g,
  /(?<![\w+/-])(?=[\w+/-]*\d)(?=[\w+/-]*[A-Z])(?=[\w+/-]*[a-z])[A-Za-z0-9+/_-]{40,}={0,2}(?![\w+/=-])/g,
];
const mark = '[redacted]';

export const redactText = (text: string): string => forms.reduce((rest, form) => rest.replaceAll(form, mark), text);

function redact(value: Json, key: string): Json {
  if (typeof value === 'string') return secretName.test(key) && !harmlessName.has(key) ? mark : redactText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one: Json) => redact(one, key));
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [redactText(name), dropped.has(name) ? mark : redact(inner, name)]),
  );
}

/** A Secret is nothing but its name: none is ever read for an archive, and none passes should one be given. */
export function redactObject(object: KubeObject): Json {
  const { kind, metadata } = object;
  if (kind === 'Secret')
    return { kind, metadata: { name: redactText(metadata.name), namespace: metadata.namespace ?? '' } };
  return redact(object as unknown as Json, '');
}

/** Of anything that is no object of a cluster: the doctor's answer, the status. */
export const redactJson = (value: unknown): Json => redact(JSON.parse(JSON.stringify(value)) as Json, '');
