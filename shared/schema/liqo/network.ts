/** ipam.liqo.io Network: a requested range, and the range that IPAM granted. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Cidr } from '../definition/addresses.ts';
import { Conditions } from '../definition/fields.ts';
import { ageColumn, cel, defineKind, immutable } from '../definition/kind.ts';
import { networkNames } from './network-names.ts';

export const NetworkSpec = z
  .object({
    cidr: Cidr.meta(immutable('cidr')).describe('Range wanted.'),
    preAllocated: z
      .int32()
      .min(0)
      .meta(immutable('preAllocated'))
      .optional()
      .describe('So many of its first addresses are never given out.'),
  })
  .meta(
    cel({
      rule: 'has(self.preAllocated) == has(oldSelf.preAllocated)',
      message: 'preAllocated is immutable: delete the object and create it again',
    }),
  );
export type NetworkSpec = z.infer<typeof NetworkSpec>;

export const NetworkStatus = z.object({
  cidr: Cidr.optional().describe('Range granted.'),
  conditions: Conditions.optional().describe('Why nothing was granted. Isthmus only.'),
});
export type NetworkStatus = z.infer<typeof NetworkStatus>;

export type Network = KubeResource<NetworkSpec, NetworkStatus>;

export const networks = defineKind<Network>({
  ...networkNames.networks,
  shortNames: ['net'],
  categories: ['liqo'],
  description: 'A requested range, and the range that IPAM granted.',
  writers: { object: 'the installation, the configuration controller or a user', status: 'network controller' },
  columns: [
    { name: 'Desired CIDR', type: 'string', jsonPath: '.spec.cidr' },
    { name: 'Remapped CIDR', type: 'string', jsonPath: '.status.cidr' },
    ageColumn,
  ],
  spec: NetworkSpec,
  status: NetworkStatus,
});
