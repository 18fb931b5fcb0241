/** That the cost model counts what it claims, and that the targets hold. */
import { describe, expect, test } from 'vitest';
import { cloudFunctions } from '#functions/catalogue.ts';
import { idleCost } from '#infra/rules/idle-cost.ts';
import { once } from '#test/harness/in-order.ts';
import { measureListener } from './listener.ts';
import { dollars } from './prices.ts';
import { dayMs, flap, measureCost, openStage } from './scenarios.ts';

/** By an eighth of a day each. */
const measured = once(() => measureCost(0.125));

describe('an hour of an idle cluster', () => {
  test('is twelve pings of 300 s, half of them noted, and not a single request', async () => {
    const stage = await openStage();
    await stage.join('rome');
    const { units, calls } = await stage.measure(() => stage.pass(3_600_000));
    expect(calls).toEqual({ 'channel-message': 12, 'schedule-sweep': 60 });
    expect(units).toMatchObject({ httpRequest: 0, writeUnit: 6, connectionMinute: 60, busEvent: 0 });
    // Twelve pings and one answer, the eighth.
    expect(units.socketMessage).toBe(13);
    // Each ping reads the connection at half the price, the limits of its tenant and, in one query, what was desired and when it was heard; sweeps read besides.
    const { units: without } = await stage.measure(() => stage.model.sweep());
    expect(units.readUnit - 60 * without.readUnit).toBe(30);
  });
});

test('the standing price of a schedule that finds nothing to do is what its runs come to', async () => {
  const stage = await openStage();
  const { units } = await stage.measure(() => stage.pass(dayMs));
  const sweeps = cloudFunctions.flatMap(({ trigger, memoryMb }) =>
    trigger.kind === 'schedule' ? [{ everyMinutes: 1, memoryMb }] : [],
  );
  expect(idleCost({ resourceTypes: [], schedules: sweeps }).total).toBeCloseTo(30 * dollars(units), 3);
});

test('a peering is made and ended by requests that are counted one by one', async () => {
  const stage = await openStage();
  await stage.join('rome');
  await stage.join('milan');
  let id = '';
  const made = await stage.measure(async () => {
    id = await stage.peer('rome', 'milan');
  });
  const { calls, units } = made;
  expect(calls['api-peerings-create']).toBe(1);
  expect(units.httpRequest).toBe(1 + (calls['channel-agent-desired'] ?? 0) + (calls['channel-agent-observed'] ?? 0));
  const functions = Object.entries(calls).filter(([name]) => !name.startsWith('socket: '));
  expect(units.lambdaRequest).toBe(functions.reduce((sum, [, times]) => sum + times, 0));
  expect(units.busEvent).toBe(calls['events-dispatch']);
  expect(dollars(units)).toBeLessThanOrEqual(0.0003);
  const ended = await stage.measure(() => stage.unpeer(id));
  expect(dollars(ended.units)).toBeLessThanOrEqual(0.0003);
  for (const { cluster } of stage.agents.values()) expect(cluster.remains).toEqual([]);
});

test('a list of clusters reads the records together, and together when each was seen: a quarter of a unit for each at most', async () => {
  const stage = await openStage();
  const readsFor = async () => {
    const call = { method: 'GET', path: '/v1/clusters', authorization: `Bearer ${stage.apiKey}` };
    const { units } = await stage.measure(async () => void (await stage.model.http(call)));
    return units.readUnit;
  };
  for (let i = 0; i < 12; i += 1) await stage.join(`c-${i}`);
  await readsFor();
  const few = await readsFor();
  for (let i = 12; i < 36; i += 1) await stage.join(`c-${i}`);
  const more = (await readsFor()) - few;
  // By their sizes, at half price: a key of its own for each would be half a unit, however small.
  expect(more).toBeGreaterThan(0);
  expect(more).toBeLessThanOrEqual(24 * 0.25);
});

test('each watch event that the broker is told of is one request, one event and one reaction', async () => {
  const stage = await openStage();
  await stage.join('rome');
  await stage.join('milan');
  await stage.peer('rome', 'milan');
  const { calls } = await stage.measure(() => flap(stage, 20));
  expect(calls).toMatchObject({ 'channel-agent-observed': 20, 'events-dispatch': 20, 'events-peerings': 20 });
});

test('the targets hold: an idle cluster 0.03 USD a month, a peering 0.0003, an idle stack 5', async () => {
  const readings = await measured();
  expect(30 * dollars(readings.clusterDay.units)).toBeLessThanOrEqual(0.03);
  expect(dollars(readings.peeringSetUp.units)).toBeLessThanOrEqual(0.0003);
  expect(30 * dollars(readings.stackDay.units) + 15 * 0.1 + 3).toBeLessThanOrEqual(5);
  expect(readings.clusterDay.units.connectionMinute).toBeGreaterThanOrEqual(dayMs / 60_000);
});

test('a portal that listens is a ping and a pong every five minutes, fourteen openings a day, and for each change one frame and one page of the feed', async () => {
  const { listenerDay, listenerNews } = await measureListener();
  expect(listenerDay.calls).toEqual({ 'channel-connect': 14, 'channel-disconnect': 13, 'channel-message': 288 });
  expect(listenerDay.units).toMatchObject({ connectionMinute: 1_440, socketMessage: 2 * 288, httpRequest: 0 });
  expect(listenerNews.calls).toEqual({ 'api-events-list': 1, 'socket: news': 1 });
  // A twentieth of the price of asking every five seconds.
  expect(30 * dollars(listenerDay.units)).toBeLessThan(0.05);
});

test('samples for graphs take no request of their own: a read and a write of an item below 2 KB, and a look at whether the peering is of the cluster', async () => {
  const { samplesDay } = await measured();
  const { writeUnit, readUnit } = samplesDay.units;
  const reports = 2 * 288;
  expect(samplesDay.calls).toEqual({});
  expect(writeUnit).toBeLessThanOrEqual(3 * reports);
  expect(readUnit).toBeLessThanOrEqual(3 * reports);
});

test('the log is billed by the lines that the functions write: one of about 500 bytes for a request, none for a ping', async () => {
  const stage = await openStage();
  const rome = await stage.join('rome');
  const { units: pinged } = await stage.measure(() => rome.ping());
  expect(pinged.logByte).toBe(0);
  const { units: asked } = await stage.measure(() => rome.cluster.pull().then(() => undefined));
  expect(asked.logByte).toBeGreaterThan(400);
  expect(asked.logByte).toBeLessThan(550);
});
