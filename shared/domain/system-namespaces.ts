/** Which namespaces may be offloaded, which names may be asked for at a provider, and why not. */
import { label, systemNamespace, name as wellKnown } from './liqo-keys.ts';
import { storageNamespace } from './storage-keys.ts';

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const maxNamespaceLength = 63;
const tenantPrefix = wellKnown.tenantNamespace('');

/** Undefined when `name` can be the name of a namespace; otherwise what is wrong with it. */
export function namespaceNameProblem(name: string): string | undefined {
  if (name.length > maxNamespaceLength) {
    return `${JSON.stringify(name)} has ${name.length} characters, a namespace name has at most ${maxNamespaceLength}`;
  }
  if (!dnsLabel.test(name)) {
    return `${JSON.stringify(name)} is not a DNS-1123 label: lower-case letters, digits and -, starting and ending with a letter or digit`;
  }
  return undefined;
}

/**
 * Namespaces of Kubernetes and of Isthmus itself: offloading one would lend out what keeps the cluster running. Not the one of real claims:
 * `liqoctl move volume` offloads it. `labels` are those of the namespace where known: a tenant namespace may have any name.
 */
export function isSystemNamespace(name: string, labels: Readonly<Record<string, string>> = {}): boolean {
  return (
    name.startsWith('kube-') ||
    name === systemNamespace ||
    name.startsWith(tenantPrefix) ||
    label.tenantNamespace in labels
  );
}

/** Undefined when a consumer may have a namespace of this name at a provider; otherwise the reason of the refusal. */
export function remoteNamespaceProblem(name: string): string | undefined {
  const syntax = namespaceNameProblem(name);
  if (syntax !== undefined) return syntax;
  if (isSystemNamespace(name) || name === storageNamespace || name === 'default') {
    return `${JSON.stringify(name)} is reserved at every provider, like kube-*, ${systemNamespace}, ${tenantPrefix}* and default`;
  }
  return undefined;
}
