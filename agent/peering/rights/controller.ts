/** Gives the agent its rights in tenant, mapped and offloaded namespaces when they appear, and takes them back when they are such no more. */
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { deleteObject } from '#kube/writes/write-if-changed.ts';
import { agentRole } from '#shared/domain/agent-roles.ts';
import { namespaces, roleBindings } from '#shared/domain/core-kinds.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import { fieldManager, label } from '#shared/domain/liqo-keys.ts';
import { settled } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { agentBinding, gatewayBinding, podSecurityLabels, rolesIn } from './objects.ts';

const own: ReadonlySet<string> = new Set(Object.values(agentRole));

/** The namespace went away between. */
async function unlessGone(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (codeOf(error) !== 'kube_not_found') throw error;
  }
}

export function createNamespaceRightsController({ cluster, config, clock, log }: PeeringDeps): Controller {
  const { api, caches } = cluster;
  const all = caches.cache(namespaces);
  const offloadings = caches.cache(namespaceOffloadings);
  const bindings = caches.cache(roleBindings, { labelSelector: `${label.managed}=true` });
  return createController(
    {
      name: 'namespace-rights',
      workers: 4,
      watches: [
        watch(all, ({ metadata }) => [metadata.name]),
        watch(offloadings, ({ metadata }) => [metadata.namespace ?? '']),
        watch(bindings, ({ metadata }) => (own.has(metadata.name) ? [metadata.namespace ?? ''] : [])),
      ],
      async reconcile(name, signal) {
        const namespace = all.get({ name });
        if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) return settled;
        const isOffloaded = offloadings.list().some(({ metadata }) => metadata.namespace === name);
        const wanted = rolesIn(namespace, isOffloaded);
        for (const role of Object.values(agentRole)) {
          const current = bindings.get({ namespace: name, name: role });
          if (!wanted.includes(role)) {
            if (current !== undefined) await deleteObject(api, roleBindings, current, signal);
            continue;
          }
          const binding = agentBinding(role, name, config.systemNamespace);
          if (current !== undefined && sameContent(current.subjects, binding.subjects)) continue;
          await unlessGone(api.apply(roleBindings, binding, { fieldManager: fieldManager.agent }, signal));
        }
        const labels = podSecurityLabels(namespace);
        if (labels !== undefined)
          await unlessGone(api.mergePatch(namespaces, { name }, { metadata: { labels } }, {}, signal));
        const gateways = gatewayBinding(namespace, config.gatewayRole);
        if (gateways !== undefined && bindings.get({ namespace: name, name: gateways.metadata.name }) === undefined)
          await unlessGone(api.apply(roleBindings, gateways, { fieldManager: fieldManager.agent }, signal));
        return settled;
      },
    },
    { clock, log },
  );
}
