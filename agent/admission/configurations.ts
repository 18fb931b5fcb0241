/** The two webhook configurations, as objects. */
import { toBase64 } from '#agent/pki/pem.ts';
import type { MutatingWebhookConfiguration, ValidatingWebhookConfiguration } from '#shared/domain/core-kinds.ts';
import { admission, label } from '#shared/domain/liqo-keys.ts';
import type { ReflectedKind } from '#shared/schema/isthmus/peering-policy.ts';
import { type Entry, type FailurePolicy, guestKinds, mutating, validating } from './entries.ts';

export const { configuration: configurationName, service: webhookService, label: webhookLabel } = admission;
export const webhookPort = 9443;
/** Of the Service in front of it, as `isthmus join` makes it. */
const servicePort = 443;

export interface Endpoint {
  readonly bundle: string;
  /** Before every path, so that only the API server knows where to ask. */
  readonly secretPath: string;
  /** Where the Service is. */
  readonly namespace: string;
  /** Absent: the Service. Present: API servers that do not reach the cluster network, and tests. */
  readonly url?: string;
}

export const failurePolicyOf = (path: string): FailurePolicy =>
  [...mutating, ...validating].find((entry) => entry.path === path)?.failurePolicy ?? 'Fail';

const webhook = (entry: Entry, { bundle, secretPath, namespace, url }: Endpoint) => ({
  name: entry.name,
  clientConfig: {
    caBundle: toBase64(bundle),
    ...(url === undefined
      ? { service: { namespace, name: webhookService, port: servicePort, path: `/${secretPath}${entry.path}` } }
      : { url: `${url}/${secretPath}${entry.path}` }),
  },
  rules: [
    {
      apiGroups: [entry.group],
      apiVersions: [entry.version],
      resources: [...entry.resources],
      operations: [...entry.operations],
      scope: '*',
    },
  ],
  ...(entry.namespaceSelector && { namespaceSelector: entry.namespaceSelector(namespace) }),
  ...(entry.skippable && {
    objectSelector: { matchExpressions: [{ key: label.webhookSkip, operator: 'NotIn', values: ['true'] }] },
  }),
  ...(entry.onlyIf && { matchConditions: [{ name: 'only-if', expression: entry.onlyIf }] }),
  failurePolicy: entry.failurePolicy,
  matchPolicy: 'Equivalent',
  sideEffects: entry.sideEffects,
  admissionReviewVersions: ['v1'],
  // After a refusal, the controller that creates the pods retries with growing back-off. On a busy node a slow answer is therefore sooner than a
  // refusal.
  timeoutSeconds: 10,
});

const apiVersion = 'admissionregistration.k8s.io/v1';
const metadata = { name: configurationName, labels: { [webhookLabel]: 'true', [label.managed]: 'true' } };

export const mutatingConfiguration = (endpoint: Endpoint): MutatingWebhookConfiguration => ({
  apiVersion,
  kind: 'MutatingWebhookConfiguration',
  metadata,
  webhooks: mutating.map((entry) => webhook(entry, endpoint)),
});

/** `refused`: kinds that some consumer may not send. */
export const validatingConfiguration = (
  endpoint: Endpoint,
  refused: readonly ReflectedKind[] = [],
): ValidatingWebhookConfiguration => ({
  apiVersion,
  kind: 'ValidatingWebhookConfiguration',
  metadata,
  webhooks: [...validating, ...guestKinds(refused)].map((entry) => webhook(entry, endpoint)),
});
