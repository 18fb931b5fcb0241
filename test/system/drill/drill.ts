/** Injects one fault, hears the doctor's first answer, undoes it, and sees that the doctor finds nothing any more. */
import path from 'node:path';
import { isthmus } from '#cli/captured-io.ts';
import { type CauseCode, causeCodes, isWarning } from '#cli/doctor/causes.ts';
import type { Diagnosis } from '#cli/doctor/print.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { Asking, DrillGround, Fault } from './fault.ts';

export interface Answered {
  readonly fault: Fault;
  readonly first: Diagnosis['cause'];
  readonly right: boolean;
  readonly afterMs: number;
}

const answerWithinMs = 120_000;
/** Longer than a slice that shrank waits before it grows again (`growAfterMs`). */
const healthyWithinMs = 420_000;

async function ask(
  ground: DrillGround,
  { probe = false, kubeconfigs = {}, clockAheadMs = 0 }: Asking = {},
): Promise<Diagnosis> {
  const args = [
    ...['doctor', 'rome', 'milan', '-o', 'json'],
    ...['--kubeconfig', kubeconfigs.rome ?? ground.kubeconfig('rome')],
    ...['--peer-kubeconfig', kubeconfigs.milan ?? ground.kubeconfig('milan')],
    ...(probe ? [] : ['--no-probe']),
  ];
  const env = { ISTHMUS_CONFIG: path.join(ground.stage.world.stateDir, 'config.json') };
  const clock = { ...systemClock, now: () => systemClock.now() + clockAheadMs };
  const { code, out, err } = await isthmus(args, { env, ...(clockAheadMs !== 0 && { clock }) });
  if (out === '') throw new Error(`doctor ended with ${code}: ${err}`);
  return JSON.parse(out) as Diagnosis;
}

/** Rejects when something is found that no fault of the drill made. */
export async function healthy(ground: DrillGround): Promise<void> {
  await eventually(
    'the doctor to find nothing',
    async () => {
      const { cause } = await ask(ground);
      if (cause !== undefined) throw new Error(`${cause.code}: ${cause.text}: ${cause.evidence.join('; ')}`);
      return true;
    },
    { withinMs: healthyWithinMs, everyMs: 1_000 },
  );
}

const knownCode = (code: string): code is CauseCode => (causeCodes as readonly string[]).includes(code);

export async function drill(ground: DrillGround, fault: Fault): Promise<Answered> {
  const began = performance.now();
  const { undo, asking } = await fault.inject(ground);
  try {
    const first = await firstAnswer(ground, fault, asking);
    return { fault, first, right: first?.code === fault.says, afterMs: Math.round(performance.now() - began) };
  } finally {
    await undo();
    await healthy(ground);
  }
}

/** The first one that is more than a warning, unless a warning is what the fault is. Undefined: nothing was found in time. */
async function firstAnswer(
  ground: DrillGround,
  { says }: Fault,
  asking: Asking | undefined,
): Promise<Diagnosis['cause']> {
  let last: Diagnosis['cause'];
  const look = async (): Promise<Diagnosis['cause'] | false> => {
    const { cause } = await ask(ground, asking);
    last = cause;
    return cause !== undefined && knownCode(cause.code) && (!isWarning(cause) || cause.code === says) && cause;
  };
  return eventually('an answer', look, { withinMs: answerWithinMs, everyMs: 500 }).catch(() => last);
}
