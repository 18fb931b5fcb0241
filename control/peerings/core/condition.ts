/** Conditions of a peering as its decisions read them. */
import type { ConditionType, PeeringCondition } from '../../model/peering.ts';

export type Condition = Omit<PeeringCondition, 'since'>;

export type Side = PeeringCondition['side'];

export const holds = (type: ConditionType, side: Side, message: string, reason = 'Yes'): Condition => ({
  type,
  side,
  status: 'True',
  reason,
  message,
  action: '',
});

export const lacks = (type: ConditionType, side: Side, reason: string, message: string, action = ''): Condition => ({
  type,
  side,
  status: 'False',
  reason,
  message,
  action,
});
