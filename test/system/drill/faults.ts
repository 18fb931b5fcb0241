/** All faults of the drill, in the order in which they are injected. */
import type { Fault } from './fault.ts';
import { askingFaults, installationFaults } from './faults/installation.ts';
import { networkFaults } from './faults/network.ts';
import { trustFaults } from './faults/trust.ts';
import { workloadFaults } from './faults/workload.ts';

export const faults: readonly Fault[] = [
  ...askingFaults,
  ...workloadFaults,
  ...networkFaults,
  ...installationFaults,
  ...trustFaults,
];
