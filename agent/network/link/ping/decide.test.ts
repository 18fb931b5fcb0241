import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  latencyText,
  linkValue,
  nextPingAt,
  type PingState,
  packetLoss,
  pingSent,
  pingTiming,
  pongReceived,
  startPings,
} from './decide.ts';
import { answerTo, encodePing, maxPingBytes, parsePing, timeStampOf } from './message.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('ping messages', () => {
  test('a ping is answered with the same time stamp text and cluster ID, of any content', () => {
    const ping = parsePing(
      bytes('{"clusterID":"unknown","msgType":"PING","timeStamp":"2026-01-01T01:02:03.120000+02:00","x":1}'),
    );
    expect(new TextDecoder().decode(encodePing(answerTo(ping!)!))).toBe(
      '{"clusterID":"unknown","msgType":"PONG","timeStamp":"2026-01-01T01:02:03.120000+02:00"}',
    );
  });

  test.each([
    { what: 'ranges of the sender', ranges: { pod: ['10.1.0.0/16'], external: ['10.2.0.0/16'] }, counts: true },
    { what: 'no external range', ranges: { pod: ['10.1.0.0/16'], external: [] }, counts: false },
    { what: 'no list', ranges: { pod: '10.1.0.0/16', external: ['10.2.0.0/16'] }, counts: false },
    { what: 'a text that is no range', ranges: { pod: ['; rm -rf /'], external: ['10.2.0.0/16'] }, counts: false },
    { what: 'a host', ranges: { pod: ['10.1.2.3/16'], external: ['10.2.0.0/16'] }, counts: false },
    { what: 'very many', ranges: { pod: Array(9).fill('10.1.0.0/16'), external: ['10.2.0.0/16'] }, counts: false },
    { what: 'null', ranges: null, counts: false },
  ])('a ping that announces $what is one; that it counts: $counts', ({ ranges, counts }) => {
    const ping = parsePing(bytes(JSON.stringify({ clusterID: 'a', msgType: 'PING', timeStamp: 't', ranges })));
    expect(ping).toEqual({ clusterID: 'a', msgType: 'PING', timeStamp: 't', ...(counts && { ranges }) });
    expect(parsePing(encodePing(ping!))).toEqual(ping);
  });

  test('an answer is not answered', () => {
    expect(answerTo({ clusterID: 'a', msgType: 'PONG', timeStamp: 't' })).toBeUndefined();
  });

  test.each([
    { what: 'no JSON', text: 'PING' },
    { what: 'a number', text: '7' },
    { what: 'null', text: 'null' },
    { what: 'another type', text: '{"clusterID":"a","msgType":"PUNG","timeStamp":"t"}' },
    { what: 'no time stamp', text: '{"clusterID":"a","msgType":"PING"}' },
    { what: 'a numeric time stamp', text: '{"clusterID":"a","msgType":"PING","timeStamp":3}' },
    {
      what: 'more than Liqo reads',
      text: `{"clusterID":"${'a'.repeat(maxPingBytes)}","msgType":"PING","timeStamp":"t"}`,
    },
    { what: 'half an object', text: '{"clusterID":"a","msgType":"PING"' },
  ])('$what is ignored', ({ text }) => {
    expect(parsePing(bytes(text))).toBeUndefined();
  });

  test('a ping with padding behind it, even beyond what is read, is a ping', () => {
    const padded = encodePing({ clusterID: 'a', msgType: 'PING', timeStamp: 't' }, 1312);
    expect(padded.length).toBe(1312);
    expect(parsePing(padded)).toEqual({ clusterID: 'a', msgType: 'PING', timeStamp: 't' });
  });

  test('bytes that are no text are ignored', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (data) => parsePing(data) === undefined));
  });

  test('time stamps keep their text through Go, which drops trailing zeros, and never repeat', () => {
    const texts = Array.from({ length: 1000 }, (_, serial) => timeStampOf(1_760_000_000_000, serial));
    expect(new Set(texts).size).toBe(1000);
    for (const text of texts) expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{8}[1-9]Z$/);
  });
});

describe('pinging', () => {
  const pinged = (state: PingState, at: number): PingState => pingSent(state, `t${at}`, at);

  test('answered pings go out each second, unanswered ones four times a second', () => {
    let state = startPings(0);
    expect(nextPingAt(state)).toBe(0);
    state = pinged(state, 0);
    expect(nextPingAt(state)).toBe(250);
    state = pongReceived(state, 't0', 12);
    expect(nextPingAt(state)).toBe(1000);
  });

  test.each([
    { at: 0, answers: [], value: 'Connecting' },
    { at: 10_000, answers: [], value: 'Connecting' },
    { at: 10_001, answers: [], value: 'Error' },
    { at: 10_001, answers: [50], value: 'Connected' },
    { at: 10_051, answers: [50], value: 'Error' },
    { at: 30_001, answers: [50, 25_000], value: 'Connected' },
  ])('at $at ms, after answers at $heard, the link is $value', ({ at, answers, value }) => {
    let state = startPings(0);
    for (const time of answers) state = pongReceived(pinged(state, time - 10), `t${time - 10}`, time);
    expect(linkValue(state, at)).toBe(value);
  });

  test('an answer older than the last one, a repeated one and a foreign one change nothing', () => {
    let state = pinged(pinged(startPings(0), 0), 250);
    state = pongReceived(state, 't250', 260);
    for (const text of ['t0', 't250', 'forged']) expect(pongReceived(state, text, 300)).toBe(state);
  });

  test('what is lost counts from the first answer on, not while the link comes up', () => {
    let state = startPings(0);
    for (let at = 0; at <= 30_000; at += 250) state = pinged(state, at);
    expect(packetLoss(state)).toBeUndefined();
    state = pongReceived(state, 't30000', 30_010);
    expect(packetLoss(state)).toBe(0);
    state = pongReceived(pinged(pinged(state, 31_000), 31_250), 't31250', 31_260);
    expect(packetLoss(state)).toBe(33);
  });

  test('latency is printed as Liqo prints it', () => {
    expect([12.7, 1, 0.25, 0, undefined].map(latencyText)).toEqual(['12ms', '1ms', '250μs', 'N/A', 'N/A']);
  });

  test('in any history: loss is the share of the pings given up, memory is bounded, silence ends in Error', () => {
    const steps = fc.array(
      fc.record({
        wait: fc.integer({ min: 1, max: 4000 }),
        answers: fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 3 }),
      }),
      { maxLength: 150 },
    );
    fc.assert(
      fc.property(steps, (history) => {
        let state = startPings(0);
        let now = 0;
        const sent: string[] = [];
        for (const { wait, answers } of history) {
          now += wait;
          if (now >= nextPingAt(state)) {
            state = pinged(state, now);
            sent.push(`t${now}`);
          }
          for (const back of answers) state = pongReceived(state, sent.at(-1 - back) ?? 'none', now);
          expect(state.outcomes.length).toBeLessThanOrEqual(pingTiming.window);
          expect(state.pending.length).toBeLessThanOrEqual(1 + pingTiming.errorMs / pingTiming.hurryMs);
          const loss = packetLoss(state);
          expect(loss === undefined || (loss >= 0 && loss <= 100)).toBe(true);
        }
        expect(linkValue(state, now + pingTiming.errorMs + 1)).toBe('Error');
      }),
    );
  });
});
