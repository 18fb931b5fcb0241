/** npm run isolation: a million generated operations of many tenants over every route of the API document, in worlds of 5,000 each. */
import { parseArgs } from 'node:util';
import { runIsolation } from '#functions/testing/isolation.ts';

const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    tenants: { type: 'string', default: '8' },
  },
});
const total = Number(values.operations);
const tenants = Number(values.tenants);
const perWorld = 5_000;

let performed = 0;
let twins = 0;
const byStatus: Record<string, number> = {};
const byOperation = new Map<string, { tried: number; done: number }>();
const startedAt = Date.now();
for (let seed = Number(values.seed); performed < total; seed += 1) {
  const count = Math.min(perWorld, total - performed);
  try {
    const report = await runIsolation({ seed, count, tenants });
    performed += report.operations;
    twins += report.twins;
    for (const [status, times] of Object.entries(report.byStatus)) byStatus[status] = (byStatus[status] ?? 0) + times;
    for (const [id, { tried, done }] of Object.entries(report.byOperation)) {
      const sum = byOperation.get(id) ?? { tried: 0, done: 0 };
      byOperation.set(id, { tried: sum.tried + tried, done: sum.done + done });
    }
  } catch (error) {
    process.stderr.write(
      `seed ${seed}: ${(error as Error).message}\nagain with: npm run isolation -- --seed ${seed} --operations ${count}\n`,
    );
    process.exit(1);
  }
  if (performed % 50_000 < perWorld) {
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    process.stderr.write(`${performed} operations, ${twins} compared with what never existed, ${seconds} s\n`);
  }
}
const width = Math.max(...[...byOperation.keys()].map((id) => id.length));
for (const [id, { tried, done }] of [...byOperation].sort()) {
  process.stdout.write(`${id.padEnd(width)}  tried ${String(tried).padStart(7)}  done ${String(done).padStart(7)}\n`);
}
process.stdout.write(`statuses: ${JSON.stringify(byStatus)}\n`);
process.stdout.write(`${performed} operations of ${tenants} tenants, ${twins} compared, 0 breaches\n`);
