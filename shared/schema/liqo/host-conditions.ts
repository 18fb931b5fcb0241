/** How each node or gateway fares with a RouteConfiguration or FirewallConfiguration. */
import * as z from 'zod';
import { Timestamp } from '../definition/fields.ts';

export const HostCondition = z.object({
  host: z.string().describe('Node or gateway pod.'),
  type: z.enum(['Applied', 'Error']),
  status: z.enum(['True', 'False', 'Unknown']),
  lastTransitionTime: Timestamp.optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
});
export type HostCondition = z.infer<typeof HostCondition>;
export const HostConditions = z.array(HostCondition);
