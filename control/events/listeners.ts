/** Sockets on which a portal is told that the event feed of its tenant has something new. What it is, `GET /v1/events` says, never the socket. */
import { AppError } from '#shared/errors/app-error.ts';
import type { AgentCaller } from '../access/caller.ts';

/** Whose socket it is: the rights are those that the key has when it is told. */
export interface Listener {
  readonly tenant: string;
  readonly keyId: string;
}

/** Whose WebSocket it is. */
export type SocketHolder = { readonly agent: AgentCaller } | { readonly listener: Listener };

/** Of one tenant at a time. */
export const maxListeners = 20;

export const tooManyListeners = (tenant: string): AppError =>
  new AppError(
    'limit_reached',
    `tenant ${tenant} has ${maxListeners} listening sockets open, which is the limit; close one, or share one among several readers`,
    { detail: { field: 'listeners', limit: maxListeners } },
  );
