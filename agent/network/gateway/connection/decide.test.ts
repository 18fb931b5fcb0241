/** What a Connection says about a peer that is not heard: what each side goes by, so that two people can compare. */
import { expect, test } from 'vitest';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import { handshakeAdvice, type LinkFacts } from './decide.ts';

const connection = (type: 'Server' | 'Client', status: Connection['status']): Connection =>
  ({ kind: 'Connection', metadata: { name: 'gw-x' }, spec: { type, gatewayRef: {} }, status }) as Connection;
const client = { spec: { endpoint: { addresses: ['192.0.2.1', 'gw.example'], port: 51840 } } } as GatewayClient;
const server = {
  spec: { endpoint: { port: 51840 } },
  status: { endpoint: { addresses: ['192.0.2.9'], port: 30742 } },
} as unknown as GatewayServer;
const publicKey = { metadata: { name: 'gw-publickey' }, spec: { publicKey: 'THEIRS=' } } as PublicKey;
const facts = (rest: Partial<LinkFacts>): LinkFacts => ({
  connection: connection('Client', { value: 'Error' }),
  peer: 'milan',
  gateway: client,
  publicKey,
  ownKey: 'OURS=',
  ...rest,
});

test('the side that dials names both keys and where it dials', () => {
  expect(handshakeAdvice(facts({}))).toEqual({
    type: 'Handshake',
    status: 'False',
    reason: 'NoHandshake',
    message:
      'no handshake with milan in 10 s. One of these is wrong: the key of the gateway of milan has to be THEIRS= (PublicKey gw-publickey); the PublicKey at milan has to hold OURS=, the key of this side; UDP from here has to reach the gateway of milan at 192.0.2.1:51840 or gw.example:51840',
  });
});

test('the side that is dialled names the address that it found for itself', () => {
  const said = handshakeAdvice(facts({ connection: connection('Server', { value: 'Error' }), gateway: server }));
  expect(said?.message).toContain('UDP from milan has to reach this gateway at 192.0.2.9:30742');
});

test('what is not known is left out, or named by the field that has it', () => {
  const said = handshakeAdvice(facts({ gateway: undefined, publicKey: undefined, ownKey: undefined }));
  expect(said?.message).toBe(
    'no handshake with milan in 10 s. One of these is wrong: UDP from here has to reach the gateway of milan at the endpoint of the GatewayClient',
  );
});

test('a peer that shook hands and answers no ping has the right key', () => {
  const silent = connection('Client', { value: 'Error', lastHandshakeTime: '2026-01-01T00:00:00Z' });
  expect(handshakeAdvice(facts({ connection: silent }))).toMatchObject({ status: 'True', reason: 'NoAnswer' });
});

test.each(['Connected', 'Connecting', undefined])('a link that is %s says nothing', (value) => {
  const well = connection('Client', value === undefined ? undefined : { value });
  expect(handshakeAdvice(facts({ connection: well }))).toBeUndefined();
});
