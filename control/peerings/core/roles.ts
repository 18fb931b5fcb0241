/** The two roles of a peering. */
import type { PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';

export const roles = ['consumer', 'provider'] as const;

export const otherRole = (role: PeeringRole): PeeringRole => (role === 'consumer' ? 'provider' : 'consumer');
