/** Memory of everything that is ours on either side, as offloaded pods become many; read after things have settled. */
import { setTimeout as delay } from 'node:timers/promises';
import { type BenchOptions, type BenchResult, thisMachine } from '../result.ts';
import { burst, clear, offloaded, openScaleClusters, type ScaleClusters } from '../scale/scale-clusters.ts';
import { read, sides, total } from '../scale/usage.ts';

/** Read so long after the last change, several times; the highest reading counts. */
const settleMs = 15_000;
const readings = 5;

export async function run({ root, pods = 1_000, log }: BenchOptions): Promise<BenchResult> {
  const clusters = await openScaleClusters(root, pods, log);
  try {
    await clusters.limitClients('lifted');
    await burst(clusters, offloaded, 20, 120_000);
    await clear(clusters, offloaded);
    const phases = await highest(clusters, 0, log);
    const seconds = await burst(clusters, offloaded, pods, Math.max(120_000, pods * 60));
    log(`${pods} pods Ready after ${seconds.toFixed(0)} s`);
    Object.assign(phases, await highest(clusters, pods, log));
    const value = phases[`consumer, ${pods} pods`] ?? Number.NaN;
    return {
      name: 'footprint-of-pods',
      unit: 'MiB on the consumer',
      value,
      samples: [value],
      phases: { ...phases, [`s until ${pods} pods were Ready, limits lifted`]: seconds },
      machine: thisMachine(root),
    };
  } finally {
    await clusters.close();
  }
}

async function highest(
  { world: clusters }: ScaleClusters,
  pods: number,
  log: (line: string) => void,
): Promise<Record<string, number>> {
  await delay(settleMs);
  const most: Record<string, number> = {};
  for (let i = 0; i < readings; i++) {
    for (const side of sides) {
      const { residentMiB } = read(clusters, side);
      const sum = total(residentMiB);
      if (sum <= (most[`${side}, ${pods} pods`] ?? 0)) continue;
      most[`${side}, ${pods} pods`] = sum;
      for (const [role, mib] of Object.entries(residentMiB)) most[`${side}, ${pods} pods: ${role}`] = mib;
    }
    await delay(1_000);
  }
  log(
    `${pods} pods: ${Object.entries(most)
      .map(([what, mib]) => `${what} ${mib.toFixed(0)} MiB`)
      .join('; ')}`,
  );
  return most;
}
