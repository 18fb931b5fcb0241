/** Of which namespaces and requests webhooks are asked: label selectors and CEL expressions, by which requests that are harmless cost no call. */
import { maybePeerAccount } from '#agent/model/peer-accounts.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { defaultOptionsTemplate } from '#shared/schema/liqo/vk-options-template.ts';

/** Only namespaces that opted in, and never those that keep the cluster and this server alive, even if their labels opt in. */
export const offloadedNamespaces = (system: string): object => ({
  matchExpressions: [
    { key: label.schedulingEnabled, operator: 'In', values: ['true'] },
    { key: label.tenantNamespace, operator: 'DoesNotExist' },
    {
      key: 'kubernetes.io/metadata.name',
      operator: 'NotIn',
      values: ['kube-system', 'kube-public', 'kube-node-lease', system],
    },
  ],
});

/** Where users other than administrators may write. */
export const exceptSystemNamespace = (system: string): object => ({
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [system] }],
});

/** Those that a NamespaceMap made for a consumer. */
export const guestNamespaces = (): object => ({
  matchExpressions: [
    { key: label.remoteClusterId, operator: 'Exists' },
    { key: label.tenantNamespace, operator: 'DoesNotExist' },
  ],
});

/** A user name that is a label value is noted as it is: a consumer that has written its own needs no help. The other webhook checks it. */
export const creatorIsMissing = `request.operation != "CREATE" || !has(object.metadata.labels) || !("${label.creatorUser}" in object.metadata.labels) || object.metadata.labels["${label.creatorUser}"] != request.userInfo.username`;

export const hasFinalizers = 'has(object.metadata.finalizers) && size(object.metadata.finalizers) > 0';
/** Most Services of guests have nothing that the rules read: they cost no question. */
const harmless = ['kubectl.kubernetes.io/', 'isthmus.dev/', 'liqo.io/'].map((prefix) => `k.startsWith("${prefix}")`);
export const isExposing = [
  '(has(object.spec.externalIPs) && size(object.spec.externalIPs) > 0)',
  '(has(object.spec.loadBalancerIP) && object.spec.loadBalancerIP != "")',
  '(has(object.spec.loadBalancerClass) && object.spec.loadBalancerClass != "")',
  '(has(object.spec.type) && object.spec.type == "ExternalName")',
  `(${hasFinalizers})`,
  `(has(object.metadata.annotations) && object.metadata.annotations.exists(k, k.contains("/") && !(${harmless.join(' || ')})))`,
].join(' || ');

/**
 * An installation writes the default template while no agent answers yet: Helm and Argo CD make custom resources after the Deployment. Without these two fields
 * nothing in it can be refused.
 */
export const canBeRefused = `object.metadata.name != "${defaultOptionsTemplate}" || has(object.spec.reflectorsConfig) || has(object.spec.extraArgs)`;

/** Peers are plain users or accounts of theirs; the cluster's own components, which fill these namespaces as well, are neither. */
export const maybeByPeer = `!request.userInfo.username.startsWith("system:") || ${maybePeerAccount}`;
