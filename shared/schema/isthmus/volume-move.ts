/** isthmus.dev VolumeMove: the volume of one claim goes to another cluster, and back when that is ordered. It has the name of its claim. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { ageColumn, type CelRule, defineKind, immutable } from '../definition/kind.ts';

/** `target` of a move into the cluster itself. */
export const localTarget = 'local';

const moveOrders = ['abort', 'confirm', 'undo-copy-back', 'undo-discard-new-writes'] as const;
export type MoveOrder = (typeof moveOrders)[number];

const VolumeMoveSpec = z.object({
  target: z
    .string()
    .min(1)
    .meta(immutable('spec.target'))
    .describe('`local`, or the cluster ID of the provider that is to have the volume.'),
  undoWindowSeconds: z
    .int()
    .min(0)
    .default(86_400)
    .describe('How long the volume that was left is kept, from the switch on. 0: it goes at once.'),
  image: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Image of the pods that copy, when the nodes of the other cluster cannot get the one of this cluster's agent.",
    ),
  bytesPerSecond: z
    .int()
    .min(1_024)
    .optional()
    .describe('Most that the copy sends, the last pass included; absent: what the link gives.'),
  order: z
    .enum(moveOrders)
    .optional()
    .describe(
      'What a person wants of a move under way. abort: before the switch, everything stays as it was. confirm: delete the volume that was left now; refused before the move is Undoable. undo-…: go back to it, with what was written since, or without.',
    ),
});

export const movePhases = [
  'Pending',
  'Refused',
  'Preparing',
  'Copying',
  'Freezing',
  'FinalCopy',
  'Switching',
  'Undoable',
  'Discarding',
  'Keeping',
  'Confirmed',
  'Undone',
  'Aborting',
  'Aborted',
] as const;
export type MovePhase = (typeof movePhases)[number];

const whenConfirmed =
  'confirm is accepted while status.phase is Undoable, that is from the switch on until the undo window ends (move_not_undoable)';
const isNoConfirm = "!has(self.spec.order) || self.spec.order != 'confirm'";
const refusal = { message: whenConfirmed, fieldPath: '.spec.order', reason: 'FieldValueForbidden' } as const;
/** One that came before the switch would leave no time for an undo. */
const confirmRules: readonly CelRule[] = [
  { rule: `${isNoConfirm} || has(self.status)`, ...refusal },
  {
    rule: `${isNoConfirm} || (has(oldSelf.spec.order) && oldSelf.spec.order == 'confirm') || (has(oldSelf.status) && oldSelf.status.phase == 'Undoable')`,
    ...refusal,
  },
];

const Side = z.object({
  at: z.string().describe('`local` or a cluster ID.'),
  volume: z.string().optional().describe('PersistentVolume of this cluster; absent: not made yet.'),
  node: z
    .string()
    .optional()
    .describe('For whose pods it was made; the claim says so as `volume.kubernetes.io/selected-node`.'),
});

const VolumeMoveStatus = z.object({
  phase: z.enum(movePhases),
  message: z.string().optional().describe('What is awaited, or why it ended.'),
  since: z.iso.datetime().describe('When the phase began.'),
  settledGeneration: z.int().optional().describe('`metadata.generation` whose order has been taken up.'),
  way: z.enum(['forth', 'back']).default('forth').describe('back: an undo.'),
  cold: z.boolean().optional().describe('The pods of the claim end before anything is copied.'),
  confirmed: z.boolean().optional().describe('A person has ordered that the volume that was left goes.'),
  withoutCopy: z.boolean().optional().describe('An undo that leaves what was written since the switch.'),
  gaveUp: z
    .string()
    .optional()
    .describe('Why the claim goes back to the volume that it had, although it was about to be switched.'),
  claimUid: z.string().optional().describe('Of the claim that is bound to `from`.'),
  from: Side.optional(),
  to: Side.optional(),
  claim: z.string().optional().describe('JSON: labels, annotations, owners and spec of the claim that is made again.'),
  bytesDone: z.int().optional().describe('Of the present pass.'),
  bytesTotal: z.int().optional().describe('Of the present pass.'),
  bytesPerSecond: z.int().optional(),
  passes: z.int().optional().describe('Passes that were made while pods used the claim.'),
  attempts: z.int().optional().describe('Pods that copied in this phase and failed.'),
  failedPod: z.string().optional().describe('UID of the last of them.'),
  verifiedFiles: z.int().optional().describe('Files whose checksums were equal on both sides after the last pass.'),
  verifiedBytes: z.int().optional(),
  silentSince: z.iso
    .datetime()
    .optional()
    .describe('Since when a cluster with one of the volumes does not answer while it is copied.'),
  frozenAt: z.iso.datetime().optional().describe('When pods began to wait.'),
  frozenSeconds: z.number().optional().describe('For how long pods waited.'),
  undoUntil: z.iso.datetime().optional(),
});
export type VolumeMoveStatus = z.infer<typeof VolumeMoveStatus>;

export type VolumeMove = KubeResource<z.infer<typeof VolumeMoveSpec>, VolumeMoveStatus>;

export const volumeMoves = defineKind<VolumeMove>({
  group: 'isthmus.dev',
  version: 'v1alpha1',
  kind: 'VolumeMove',
  plural: 'volumemoves',
  namespaced: true,
  categories: ['isthmus'],
  description: 'Moves the volume of the claim of the same name to another cluster, with a way back.',
  writers: { object: '`isthmus move volume`', status: 'volume-move controller (consumer)' },
  columns: [
    { name: 'Target', type: 'string', jsonPath: '.spec.target' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Done', type: 'integer', jsonPath: '.status.bytesDone' },
    { name: 'Total', type: 'integer', jsonPath: '.status.bytesTotal' },
    { name: 'Undo until', type: 'string', jsonPath: '.status.undoUntil' },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
    ageColumn,
  ],
  rules: confirmRules,
  spec: VolumeMoveSpec,
  status: VolumeMoveStatus,
});
