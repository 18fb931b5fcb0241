/** The tunnel's own addresses: first /30 of 169.254.18.0/24, server first (reference 2.4). */
import type { GatewayModel } from './gateway-model.ts';

const server = '169.254.18.1';
const client = '169.254.18.2';

export const tunnelAddresses = (role: GatewayModel['role']): { readonly own: string; readonly peer: string } =>
  role === 'server' ? { own: server, peer: client } : { own: client, peer: server };
