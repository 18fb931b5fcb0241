/**
 * Sends the body of an answer as fast as its client takes it. In one piece, TLS would encrypt all of it at once and hold that, too, until the
 * client has read it.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const pieceBytes = 64 << 10;

/** What is left to be written of the answer under way on a connection. */
const rests = new WeakMap<Socket, number>();

/** Bytes of answers that this process holds for the client of a connection. */
export const heldFor = (socket: Socket): number => socket.writableLength + (rests.get(socket) ?? 0);

/** Ends the response. Its header is written, and `content-length` is in it. */
export function sendInPieces(response: ServerResponse, body: Buffer): void {
  let at = 0;
  const more = (): void => {
    const { socket } = response;
    // Its connection is gone.
    if (response.destroyed) return;
    while (body.length - at > pieceBytes) {
      const piece = body.subarray(at, at + pieceBytes);
      at += pieceBytes;
      if (socket !== null) rests.set(socket, body.length - at);
      if (!response.write(piece)) return void response.once('drain', more);
    }
    if (socket !== null) rests.delete(socket);
    response.end(body.subarray(at));
  };
  more();
}
