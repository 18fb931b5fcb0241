/** Counts what the cloud would bill: every unit that `prices.ts` has a price for, and the calls behind them. */
import type { Bill, Priced } from './prices.ts';
import { prices } from './prices.ts';

/** What CloudWatch bills for a line besides its own bytes. The platform's own lines (START, END, REPORT) are kept from the log by `systemLogLevel: WARN`. */
const logBytesPerLine = 26;
/** Our own time in one invocation of a warm function; measured below 2 ms on the machine of the project. */
export const handlerMs = 2;
/** What one round trip to the table adds to a function's duration. */
export const tableRoundTripMs = 4;

export class Meter {
  readonly #units = new Map<Priced, number>();
  readonly #calls = new Map<string, number>();
  tableCalls = 0;
  /** ms of each invocation, by function. */
  readonly durations = new Map<string, number[]>();
  /** Of the table, by partition: where the heat is. */
  readonly partitions = new Map<string, { reads: number; writes: number }>();

  add(unit: Priced, amount = 1): void {
    this.#units.set(unit, (this.#units.get(unit) ?? 0) + amount);
  }

  call(name: string, times = 1): void {
    this.#calls.set(name, (this.#calls.get(name) ?? 0) + times);
  }

  table(pk: string, units: { readonly reads?: number; readonly writes?: number }): void {
    const { reads = 0, writes = 0 } = units;
    this.add('readUnit', reads);
    this.add('writeUnit', writes);
    const heat = this.partitions.get(pk) ?? { reads: 0, writes: 0 };
    this.partitions.set(pk, { reads: heat.reads + reads, writes: heat.writes + writes });
  }

  invocation(name: string, memoryMb: number, ms: number): void {
    this.call(name);
    const durations = this.durations.get(name) ?? [];
    durations.push(ms);
    this.durations.set(name, durations);
    this.add('lambdaRequest');
    this.add('lambdaGbSecond', (memoryMb / 1_024) * (Math.ceil(ms) / 1_000));
  }

  /** A line that a function wrote, in bytes. */
  logLine(bytes: number): void {
    this.add('logByte', bytes + logBytesPerLine);
  }

  get units(): Bill {
    return Object.fromEntries(Object.keys(prices).map((unit) => [unit, this.#units.get(unit as Priced) ?? 0])) as Bill;
  }

  get calls(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#calls].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

export interface Reading {
  readonly units: Bill;
  readonly calls: Readonly<Record<string, number>>;
}

export const read = (meter: Meter): Reading => ({ units: meter.units, calls: meter.calls });

/** What was used between two readings. */
export const since = (before: Reading, after: Reading): Reading => ({
  units: Object.fromEntries(
    Object.entries(after.units).map(([unit, value]) => [unit, value - before.units[unit as Priced]]),
  ) as Bill,
  calls: Object.fromEntries(
    Object.entries(after.calls)
      .map(([name, value]) => [name, value - (before.calls[name] ?? 0)] as const)
      .filter(([, value]) => value !== 0),
  ),
});

export const scaled = ({ units, calls }: Reading, factor: number): Reading => ({
  units: Object.fromEntries(Object.entries(units).map(([unit, value]) => [unit, value * factor])) as Bill,
  calls: Object.fromEntries(Object.entries(calls).map(([name, value]) => [name, value * factor])),
});
