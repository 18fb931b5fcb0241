/**
 * Whether the request path decides or functions that events start: how long a report takes to be answered and to reach the other cluster, and what it
 * costs. Handlers are the real ones; a round trip to the table is taken as `tableRoundTripMs`, the way through stream and bus as AWS publishes it.
 */
import { tableRoundTripMs } from '../cost/meter.ts';
import { dollars } from '../cost/prices.ts';
import { flap, openStage } from '../cost/scenarios.ts';
import { type BenchOptions, type BenchResult, thisMachine } from '../result.ts';

/** Lambda asks a stream for records four times a second: half of that in the mean. */
const streamMs = 125;
/** P99 of an event bus from PutEvents to the invocation, as AWS states it since November 2024. */
const busMs = 129;
const reports = 200;

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);

async function shape(eventsDecide: boolean) {
  const stage = await openStage({ eventsDecide });
  const { durations } = stage.model.meter;
  await stage.join('rome');
  await stage.join('milan');
  durations.clear();
  let id = '';
  const made = await stage.measure(async () => {
    id = await stage.peer('rome', 'milan');
  });
  const of = (name: string) => durations.get(name) ?? [];
  const answered = mean(of('channel-agent-observed'));
  const reacted = mean(of('events-peerings'));
  const dispatched = mean(of('events-dispatch'));
  const steps = made.calls['channel-agent-observed'] ?? 0;
  const flapped = await stage.measure(() => flap(stage, reports));
  await stage.unpeer(id);
  const toBell = eventsDecide ? answered + streamMs + dispatched + busMs + reacted : answered;
  return {
    answered,
    reacted,
    toBell,
    steps,
    peering: dollars(made.units),
    thousand: (1_000 / reports) * dollars(flapped.units),
  };
}

export async function run({ root, log }: BenchOptions): Promise<BenchResult> {
  const request = await shape(false);
  const events = await shape(true);
  log(
    `a round trip to the table is taken as ${tableRoundTripMs} ms, the stream as ${streamMs} ms, the bus as ${busMs} ms`,
  );
  return {
    name: 'decides',
    unit: 'ms from a report to the bell of the other cluster, when the request path decides',
    value: request.toBell,
    samples: [request.toBell],
    phases: {
      'request path: ms until a report of a peering that is made is answered': request.answered,
      'request path: ms of the reaction to its event': request.reacted,
      'request path: USD of a peering set up': request.peering,
      'request path: USD of 1,000 reports': request.thousand,
      'events: ms until such a report is answered': events.answered,
      'events: ms from it to the bell': events.toBell,
      'events: ms that the reports of one peering wait for stream, bus and function':
        events.steps * (events.toBell - events.answered),
      'events: USD of a peering set up': events.peering,
      'events: USD of 1,000 reports': events.thousand,
    },
    raw: { request, events, assumptions: { tableRoundTripMs, streamMs, busMs, reports } },
    machine: thisMachine(root),
  };
}
