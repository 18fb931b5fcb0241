/** Moves volumes between clusters: reads both sides before each step, and writes one thing. */
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { isChangedOrGone } from '#kube/writes/changed-or-gone.ts';
import { addFinalizer, deleteObject, dropFinalizer, writeStatus } from '#kube/writes/write-if-changed.ts';
import {
  persistentVolumeClaims,
  persistentVolumes,
  pods as podKind,
  secrets,
  services,
} from '#shared/domain/core-kinds.ts';
import { keyOf, namespaceOfKey, type Pod, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { isthmusLabel } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled } from '#shared/domain/outcome.ts';
import { moveFinalizer, moveGate } from '#shared/domain/storage-keys.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { type VolumeMove, volumeMoves } from '#shared/schema/isthmus/volume-move.ts';
import { issueServingCertificate } from '../../pki/webhook-certificate.ts';
import { decide } from './decide.ts';
import type { Facts, Patch, Step } from './facts.ts';
import { keysName, moverKeys, moverPod, moverService, serviceName } from './objects.ts';
import { createObserver, type MoveDeps } from './observe.ts';
import { isHeldBack, usesClaim } from './pods.ts';
import { abort, imageOf, statusOf } from './progress.ts';

const staleMs = 200;
const lookAgainMs = 1_000;
const longMs = 3_600_000;
const certified = ['isthmus-mover'];
const before: ReadonlySet<string> = new Set(['Preparing', 'Copying', 'Freezing', 'FinalCopy']);

/** A pod whose claims are all where they belong. */
const waitingPods = ({ apiVersion, kind, metadata, spec }: Pod): Pod =>
  ({
    apiVersion,
    kind,
    metadata: { name: metadata.name, namespace: metadata.namespace, uid: metadata.uid, labels: metadata.labels },
    spec: { volumes: spec?.volumes ?? [], schedulingGates: spec?.schedulingGates ?? [] },
  }) as unknown as Pod;

export function createMoveController(deps: MoveDeps): Controller {
  const { api, caches, events } = deps.cluster;
  const { clock } = deps;
  const moves = caches.cache(volumeMoves);
  const held = caches.cache(podKind, { labelSelector: isthmusLabel.waitsForMove, transform: waitingPods });
  const observe = createObserver(deps);

  const claimsOf = ({ metadata, spec }: Pod): string[] =>
    (spec?.volumes ?? []).flatMap(({ persistentVolumeClaim }) =>
      persistentVolumeClaim ? [`${metadata.namespace}/${persistentVolumeClaim.claimName}`] : [],
    );

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const move = await api.get(volumeMoves, refOfKey(key), signal);
    if (move === undefined) return releaseAll(key, signal);
    const facts = await observe(move, signal);
    return perform(facts, decide(facts), signal);
  }

  /** Pods that were admitted as the move ended. */
  async function releaseAll(key: string, signal: AbortSignal): Promise<Outcome> {
    const { name, namespace = '' } = refOfKey(key);
    for (const pod of held.list().filter((one) => one.metadata.namespace === namespace && usesClaim(one, name))) {
      const now = await api.get(podKind, refOf(pod), signal);
      if (now && isHeldBack(now)) await ungate(now, signal);
    }
    return settled;
  }

  async function perform(facts: Facts, step: Step, signal: AbortSignal): Promise<Outcome> {
    try {
      return await write(facts, step, signal);
    } catch (error) {
      const code = codeOf(error);
      if (isChangedOrGone(error) || code === 'kube_already_exists') return again(staleMs);
      if (!(error instanceof AppError) || (code !== 'kube_forbidden' && code !== 'kube_invalid')) throw error;
      const why = `refused by the API server: ${error.message}`;
      return write(facts, before.has(statusOf(facts).phase) ? abort(facts, why) : { do: 'wait', on: why }, signal);
    }
  }

  const conditional = <T extends { metadata: { uid?: string; resourceVersion?: string } }>(
    object: T,
    patch: Patch,
  ) => ({
    ...patch,
    metadata: { ...patch.metadata, uid: object.metadata.uid, resourceVersion: object.metadata.resourceVersion },
  });

  async function write(facts: Facts, step: Step, signal: AbortSignal): Promise<Outcome> {
    const { move } = facts;
    const namespace = move.metadata.namespace ?? '';
    switch (step.do) {
      case 'nothing':
        return settled;
      case 'wait':
        return waitFor(facts, step.on, signal);
      case 'status':
        if (step.status.phase !== move.status?.phase) tell(move, step.status.phase, step.status.message);
        await writeStatus(api, volumeMoves, move, step.status, signal);
        break;
      case 'guard':
        await addFinalizer(api, volumeMoves, move, moveFinalizer, signal);
        break;
      case 'unguard':
        await dropFinalizer(api, volumeMoves, move, moveFinalizer, signal);
        break;
      case 'createKeys': {
        const [send, fetch] = [clock.now(), clock.now()].map((now) => issueServingCertificate(certified, now));
        if (send && fetch) await api.create(secrets, moverKeys(move, send, fetch), { answer: 'metadata' }, signal);
        break;
      }
      case 'createService':
        await api.create(services, moverService(move), { answer: 'metadata' }, signal);
        break;
      case 'deleteKeys':
        await api.delete(secrets, { namespace, name: keysName(move) }, {}, signal);
        break;
      case 'deleteService':
        await api.delete(services, { namespace, name: serviceName(move) }, {}, signal);
        break;
      case 'createPod': {
        const { role, claim, at, node } = step;
        const place = { image: imageOf(facts, role), claim, at, node };
        await api.create(podKind, moverPod(move, role, place), { answer: 'metadata' }, signal);
        break;
      }
      case 'deletePod':
        await deleteObject(api, podKind, step.pod, signal);
        break;
      case 'ungate':
        await ungate(step.pod, signal);
        break;
      case 'createClaim':
        await api.create(persistentVolumeClaims, step.claim, { answer: 'metadata' }, signal);
        break;
      case 'deleteClaim':
        await deleteObject(api, persistentVolumeClaims, step.claim, signal);
        break;
      case 'patchClaim':
        await api.mergePatch(
          persistentVolumeClaims,
          refOf(step.claim),
          conditional(step.claim, step.patch),
          {},
          signal,
        );
        break;
      case 'patchVolume':
        await api.mergePatch(persistentVolumes, refOf(step.volume), conditional(step.volume, step.patch), {}, signal);
        break;
      case 'deleteVolume':
        await deleteObject(api, persistentVolumes, step.volume, signal);
        break;
      case 'patchReal': {
        const at = statusOf(facts).to?.at ?? '';
        const there = deps.providers.of(at)?.api ?? api;
        const patch = conditional(step.claim, step.patch);
        await there.mergePatch(persistentVolumeClaims, refOf(step.claim), patch, { answer: 'metadata' }, signal);
        break;
      }
      default:
        return unreachable(step);
    }
    return again(0);
  }

  const tell = (move: VolumeMove, phase: string, message = ''): void =>
    events.emit(
      move,
      phase === 'Refused' || phase === 'Aborting' ? 'Warning' : 'Normal',
      `Move${phase}`,
      message || `the move of claim ${keyOf(move)} to ${move.spec.target} is ${phase}`,
    );

  /** What is awaited stands in the status, for people. */
  async function waitFor(facts: Facts, on: string, signal: AbortSignal): Promise<Outcome> {
    const { move, nowMs } = facts;
    const { phase, undoUntil, message } = statusOf(facts);
    const isResting = phase === 'Undoable';
    if (!isResting && move.status && on !== '' && message !== `waiting for ${on}`)
      await writeStatus(api, volumeMoves, move, { ...move.status, message: `waiting for ${on}` }, signal);
    const leftMs = isResting && undoUntil ? Date.parse(undoUntil) - nowMs : lookAgainMs;
    return again(Math.max(staleMs, Math.min(leftMs, longMs)));
  }

  async function ungate(pod: Pod, signal: AbortSignal): Promise<void> {
    const index = (pod.spec?.schedulingGates ?? []).findIndex(({ name }) => name === moveGate);
    if (index < 0) return;
    const path = `/spec/schedulingGates/${index}`;
    const isMarked = pod.metadata.labels?.[isthmusLabel.waitsForMove] !== undefined;
    await api.jsonPatch(
      podKind,
      refOf(pod),
      [
        { op: 'test', path: '/metadata/uid', value: pod.metadata.uid },
        { op: 'test', path: `${path}/name`, value: moveGate },
        { op: 'remove', path },
        ...(isMarked
          ? [{ op: 'remove', path: `/metadata/labels/${isthmusLabel.waitsForMove.replace('/', '~1')}` }]
          : []),
      ],
      { answer: 'metadata' },
      signal,
    );
  }

  return createController(
    {
      name: 'volume-move',
      ownerOf: namespaceOfKey,
      watches: [watch(moves, (move) => [keyOf(move)]), watch(held, claimsOf)],
      reconcile,
    },
    deps,
  );
}
