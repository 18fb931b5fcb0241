/** A state as text that a person can review; for golden tests. */
import { diff } from './diff.ts';
import type { KernelState } from './kernel-state.ts';
import { replaceTable } from './nft-diff.ts';

const nothing = { devices: new Map(), routes: [], rules: [], neighbours: [], localFirst: true };

export const stateText = (state: KernelState): string =>
  [
    ...diff(
      { ...state, ...(state.tunnel ? { tunnel: { ...state.tunnel, implementation: 'kernel' } } : {}) },
      nothing,
    ).map(({ line }) => `ip ${line}\n`),
    ...Object.entries(state.sysctls).map(([key, value]) => `sysctl ${key}=${value}\n`),
    ...state.refused.map(({ configuration, message }) => `refused ${configuration}: ${message}\n`),
    ...state.tables.map(replaceTable),
  ].join('');
