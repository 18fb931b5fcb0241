/** List prices of us-east-1 in USD without any free tier (stack.md 2.7, August 2026). Look them up before you quote them. */
export const prices = {
  httpRequest: 1e-6,
  /** Per 32 KB, in either direction. */
  socketMessage: 1e-6,
  connectionMinute: 0.25e-6,
  lambdaRequest: 0.2e-6,
  /** arm64. */
  lambdaGbSecond: 1.33334e-5,
  writeUnit: 0.625e-6,
  readUnit: 0.125e-6,
  busEvent: 1e-6,
  schedulerRun: 1e-6,
  logByte: 0.5e-9,
} as const;

export type Priced = keyof typeof prices;
export type Bill = Readonly<Record<Priced, number>>;

export const dollars = (units: Bill): number =>
  Object.entries(prices).reduce((sum, [name, price]) => sum + units[name as Priced] * price, 0);

export const dollarsBy = (units: Bill): Record<Priced, number> =>
  Object.fromEntries(Object.entries(prices).map(([name, price]) => [name, units[name as Priced] * price])) as Record<
    Priced,
    number
  >;
