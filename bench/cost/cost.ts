/** Dollars from counted calls: of an idle stack, an idle cluster, a peering, a thousand watch events. */
import { cloudFunctions } from '#functions/catalogue.ts';
import { idleCost } from '#infra/rules/idle-cost.ts';
import { type BenchOptions, type BenchResult, thisMachine } from '../result.ts';
import { measureListener } from './listener.ts';
import type { Reading } from './meter.ts';
import { handlerMs, tableRoundTripMs } from './meter.ts';
import { dollars, dollarsBy, prices } from './prices.ts';
import { measureCost } from './scenarios.ts';

const monthDays = 30;

export async function run({ root, log }: BenchOptions): Promise<BenchResult> {
  const readings = { ...(await measureCost()), ...(await measureListener()) };
  const { stackDay, clusterDay, peeringDay, linkDay, samplesDay } = readings;
  const { peeringSetUp, peeringTornDown, thousandWatchEvents, listenerDay, listenerNews } = readings;
  const schedules = cloudFunctions.filter(({ trigger }) => trigger.kind === 'schedule');
  log(
    `${schedules.length} schedules; own time is taken as ${handlerMs} ms, a table round trip as ${tableRoundTripMs} ms`,
  );
  for (const [name, reading] of Object.entries(readings)) log(describe(name, reading));
  const cluster = monthDays * dollars(clusterDay.units);
  const result = {
    'USD a month, idle cluster (target 0.03)': cluster,
    'USD a month, idle cluster with one idle peering': cluster + (monthDays * dollars(peeringDay.units)) / 2,
    'USD a month, the link of a peering, which both agents report every five minutes':
      monthDays * dollars(linkDay.units),
    'USD a month, the part of it that samples for graphs take': monthDays * dollars(samplesDay.units),
    'USD per peering set up (target 0.0003)': dollars(peeringSetUp.units),
    'USD per peering torn down': dollars(peeringTornDown.units),
    'USD per 1,000 watch events, each reported alone': dollars(thousandWatchEvents.units),
    'USD a month, a portal that listens and to which nothing happens': monthDays * dollars(listenerDay.units),
    'USD per 1,000 changes that a portal is told of one by one and reads': 1_000 * dollars(listenerNews.units),
    'USD a month, idle production stack without alarms and dashboard': monthDays * dollars(stackDay.units),
    'USD a month, idle production stack (target 5)':
      monthDays * dollars(stackDay.units) + idleCost({ resourceTypes: standing, schedules: [] }).total,
  };
  return {
    name: 'cost',
    unit: 'USD a month for an idle cluster',
    value: cluster,
    samples: [cluster],
    phases: result,
    raw: {
      readings,
      prices,
      assumptions: { handlerMs, tableRoundTripMs, monthDays, standing },
    },
    machine: thisMachine(root),
  };
}

/** What stands in the production stage and has a price, as a test of `infra/` counts it from the templates. */
const standing = [
  ...Array.from({ length: 15 }, () => 'AWS::CloudWatch::Alarm'),
  'AWS::CloudWatch::Dashboard',
  'AWS::SecretsManager::Secret',
];

function describe(name: string, { units, calls }: Reading): string {
  const round = (n: number) => Number(n.toPrecision(3));
  const parts = Object.entries(dollarsBy(units)).filter(([, value]) => value > 0);
  const money = parts.map(([unit, value]) => `${unit} ${round(units[unit as keyof typeof units])} = ${round(value)}`);
  const called = Object.entries(calls).map(([call, times]) => `${call} ${round(times)}`);
  return `${name}: ${round(dollars(units))} USD\n  ${money.join(', ')}\n  ${called.join(', ')}`;
}
