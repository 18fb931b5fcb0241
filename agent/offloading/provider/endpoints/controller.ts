/** Provider side: an EndpointSlice for each ShadowEndpointSlice, so that pods here reach the consumer's Services. */

import { unlinkedRanges } from '#agent/network/addresses/remote-address.ts';
import { namedRanges } from '#agent/network/ranges/configuration/decide.ts';
import { EventDedupe } from '#agent/reflection/engine/event-dedupe.ts';
import type { Applied, Cache, Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { backoffMs } from '#shared/async/backoff.ts';
import { type EndpointSlice, endpointSlices, namespaces } from '#shared/domain/core-kinds.ts';
import { keyOf, type Namespace, type ObjectRef, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkAnnotation } from '#shared/domain/network-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { type ShadowEndpointSlice, shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { guestRules } from '../guests/decide.ts';
import { mappedFor } from '../model/guest-namespace.ts';
import { type Decision, decide, managedByShadowSlice, originOf } from './decide.ts';

export interface ShadowEndpointSliceDeps extends ControllerDeps {
  readonly cluster: Cluster;
}

const fieldManager = 'shadow-endpointslice-controller';
const retryMs = 30_000;
/** What the API server refuses it refuses again, and a consumer may have thousands of such objects. */
const refusedMs = (times: number): number => backoffMs(times, { baseMs: 2_000, maxMs: 5 * 60_000 });
const byOrigin = { origin: (shadow: ShadowEndpointSlice): readonly string[] => [originOf(shadow)] };

export function createShadowEndpointSliceController(deps: ShadowEndpointSliceDeps): Controller {
  const { cluster } = deps;
  const { api, caches, events } = cluster;
  const shadows = caches.cache(shadowEndpointSlices, { indexes: byOrigin });
  const slices = caches.cache(endpointSlices, { labelSelector: `${label.managedBy}=${managedByShadowSlice}` });
  const foreign = caches.cache(foreignClusters);
  const configurations = caches.cache(networkKinds.configurations);
  const networks = caches.cache(networkKinds.networks);
  const policies = caches.cache(peeringPolicies);
  const spaces: Cache<Namespace> = caches.cache(namespaces);
  const dedupe = new EventDedupe(events);

  const ofOrigin = (origin: string): string[] => shadows.byIndex('origin', origin).map(keyOf);
  const direct = (): string[] =>
    shadows
      .list()
      .filter(({ metadata }) => metadata.annotations?.[networkAnnotation.directConnectionsData] !== undefined)
      .map(keyOf);
  const unlinked = (): string[] =>
    shadows
      .list()
      .filter((shadow) => configurationOf(originOf(shadow)) === undefined)
      .map(keyOf);
  const configurationOf = (peer: string) =>
    configurations.list().find(({ metadata }) => metadata.labels?.[label.remoteClusterId] === peer);

  async function namespaceOrigin(name: string, signal: AbortSignal): Promise<string | undefined> {
    return mappedFor(spaces.get({ name })) ?? mappedFor(await api.get(namespaces, { name }, signal));
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const ref = refOfKey(key);
    const shadow = shadows.get(ref);
    const known = slices.get(ref);
    if (!shadow) dedupe.forget(key);
    if (!shadow && !known) return settled;
    const observed = {
      shadow,
      namespaceOrigin: shadow && (await namespaceOrigin(ref.namespace ?? '', signal)),
      foreign: shadow && foreign.list().find(({ spec }) => spec.clusterID === originOf(shadow)),
      configuration: configurationOf,
      unlinked: unlinkedRanges(networks.list()),
      named: shadow ? [...namedRanges(policies.list(), originOf(shadow))] : [],
      directPeers: shadow ? guestRules(policies.list(), originOf(shadow)).networkPeers : [],
    };
    let decision = decide({ ...observed, slice: known });
    // What is not ours is not in the cache, and the cache may lag.
    if (decision.do === 'apply' && decision.isNew) {
      decision = decide({ ...observed, slice: await api.get(endpointSlices, ref, signal) });
    }
    return perform(decision, ref, shadow, signal);
  }

  async function perform(
    decision: Decision,
    ref: ObjectRef,
    shadow: ShadowEndpointSlice | undefined,
    signal: AbortSignal,
  ): Promise<Outcome> {
    switch (decision.do) {
      case 'nothing':
        return settled;
      case 'wait':
        return waiting(decision.on, retryMs);
      case 'delete':
        await api.delete(endpointSlices, ref, { uid: decision.uid }, signal);
        return again(100);
      case 'refuse':
        if (shadow) events.emit(shadow, 'Warning', 'FailedReflection', decision.message);
        return waiting(decision.message, retryMs);
      case 'apply':
        return write(decision, keyOf(decision.slice), shadow, signal);
    }
  }

  async function write(
    { slice, isNew, dropped }: Extract<Decision, { do: 'apply' }>,
    key: string,
    shadow: ShadowEndpointSlice | undefined,
    signal: AbortSignal,
  ): Promise<Outcome> {
    try {
      await api.apply(endpointSlices, slice as Applied<EndpointSlice>, { fieldManager, createOnly: isNew }, signal);
    } catch (error) {
      const code = codeOf(error);
      if (code === 'kube_conflict') return again(100);
      if (code !== 'kube_invalid' && code !== 'kube_forbidden') throw error;
      const why = messageOf(error);
      if (shadow) dedupe.emit(key, shadow, 'Warning', 'FailedReflection', why);
      return waiting(why, refusedMs(dedupe.failed(key)));
    }
    dedupe.succeeded(key);
    if (shadow && dropped !== undefined) events.emit(shadow, 'Warning', 'EndpointsLeftOut', dropped);
    return settled;
  }

  return createController(
    {
      name: 'shadow-endpoint-slice',
      workers: 10,
      ownerOf: (key) => {
        const { namespace = '' } = refOfKey(key);
        return mappedFor(spaces.get({ name: namespace })) ?? namespace;
      },
      watches: [
        watch(shadows, (shadow) => [keyOf(shadow)]),
        watch(slices, (slice) => [keyOf(slice)]),
        watch(foreign, ({ spec }) => ofOrigin(spec.clusterID)),
        watch(configurations, ({ metadata }) => [
          ...ofOrigin(metadata.labels?.[label.remoteClusterId] ?? ''),
          ...direct(),
        ]),
        watch(networks, unlinked),
        watch(policies, () => [...unlinked(), ...direct()]),
        // Read in each pass, so they must be in step before the first.
        watch(spaces, () => []),
      ],
      reconcile,
    },
    deps,
  );
}
