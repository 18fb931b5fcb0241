import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { createSourcePort, portInUse } from './source-port.ts';

const signal = new AbortController().signal;
const quick = { applied: async () => undefined };

test('a gateway dials from its own port, from one of the dynamic range, and from its own again', async () => {
  const draws = [0, 0.999_999];
  const source = createSourcePort(new ManualClock(), () => draws.shift()!, undefined);
  expect([source.which(), source.now()]).toEqual(['own', undefined]);
  await source.move('another', quick, signal);
  expect([source.which(), source.now()]).toEqual(['another', 52_000]);
  await source.move('own', quick, signal);
  expect([source.which(), source.now()]).toEqual(['own', undefined]);
  await source.move('another', quick, signal);
  expect(source.now()).toBe(64_999);
});

test('a device that does not take the port holds dialling up for two seconds, not for ever', async () => {
  const clock = new ManualClock();
  const moved = createSourcePort(clock, () => 0, undefined).move(
    'another',
    { applied: () => new Promise(() => undefined) },
    signal,
  );
  clock.advance(2_000);
  await moved;
});

test('a session that runs from another port is found again by the next node process, an ended one is not', () => {
  const peer = { publicKey: '', endpoint: undefined, receivedBytes: 0, sentBytes: 0, keepaliveSeconds: 5 };
  const status = (listenPort: number, lastHandshakeMs: number | undefined) => ({
    listenPort,
    peers: [{ ...peer, lastHandshakeMs }],
  });
  expect(portInUse(status(52_000, 900_000), 1_000_000)).toBe(52_000);
  expect(portInUse(status(52_000, 800_000), 1_000_000)).toBeUndefined();
  expect(portInUse(status(52_000, undefined), 1_000_000)).toBeUndefined();
  expect(portInUse(status(51_840, 900_000), 1_000_000)).toBeUndefined();
});
