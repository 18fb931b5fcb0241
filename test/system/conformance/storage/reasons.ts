/** Why suites for storage drivers do not apply to class `liqo`, or fail. `npm run conformance -- --storage PLACE` refuses reasons that are not true any more. */
import type { Reason } from '../report.ts';
import type { Place } from './driver.ts';

const everywhere: readonly Reason[] = [
  {
    specs: /\[Testpattern: (Inline-volume|Pre-provisioned (PV|Snapshot))/,
    state: 'not applicable',
    reason: 'of a driver that a file describes, the suite has no volumes but those that a class makes',
  },
  {
    specs: /\[Testpattern: CSI Ephemeral-volume/,
    state: 'not applicable',
    reason: 'a volume of class liqo is that of a claim; CSI inline volumes have none',
  },
  {
    specs: /\[Testpattern: .*\((ext3|ext4|xfs|ntfs)\)/,
    state: 'not applicable',
    reason:
      'asks for a file system by a parameter of the class, which belongs to the class behind: class liqo takes none',
  },
  {
    specs: /\] volumegroupsnapshottable/,
    state: 'not applicable',
    reason: 'the clusters of a run have no kinds of group snapshots; those of volumes at providers never become ready',
  },
  {
    specs: /\(immediate-binding\)/,
    state: 'not applicable',
    reason:
      'asks for volumeBindingMode Immediate: a class of ours is accepted with WaitForFirstConsumer only, because the volume is made in the cluster of its first pod',
  },
  {
    specs: /\] volume-modify/,
    state: 'not applicable',
    reason: 'spec.volumeAttributesClassName is refused by an event',
  },
];

/** Of pods on a virtual node. */
const atProvider: readonly Reason[] = [
  {
    specs:
      /read-write-once-pod .* should block a second pod from using an in-use ReadWriteOncePod volume on the same node/,
    state: 'failed',
    reason:
      'waits for the event FailedMount, by which a kubelet refuses the second pod that names its node; the scheduler of the provider holds that pod back before, with the event FailedScheduling',
  },
];

export const storageReasonsOf = {
  here: everywhere,
  provider: [...everywhere, ...atProvider],
} as const satisfies Record<Place, readonly Reason[]>;
