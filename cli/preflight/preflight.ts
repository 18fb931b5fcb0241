/** The checks as `join` and `install` begin with them, and as `isthmus check` prints them. */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { ClusterState } from '#cli/install/cluster-state.ts';
import type { Settled } from '#cli/install/read-ranges.ts';
import type { CliIo } from '#cli/output/io.ts';
import { during, type Progress } from '#cli/output/progress.ts';
import type { ProfileName } from '#cli/platform/profiles.ts';
import type { PlatformSettings } from '#cli/platform/settings.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { decide } from './decide.ts';
import { type CheckReport, type Finding, type Stop, stopsOf } from './findings.ts';
import { type CheckFlags, observe, type Wanted } from './observe.ts';

/** What the installation goes on with. */
export interface Ready {
  readonly state: ClusterState;
  readonly network: Settled | undefined;
  readonly apiServerUrl: string;
  readonly platform: PlatformSettings | undefined;
  /** Undefined: not named, it is found each time. */
  readonly profile: ProfileName | undefined;
}

/** Fails with the code of the check that stops, or with `preflight_failed` when several do; nothing has been changed by then. */
export async function preflight(
  io: CliIo,
  progress: Progress,
  kube: KubeClient,
  flags: CheckFlags,
  wanted: Wanted,
): Promise<Ready> {
  const { findings, observed } = await during(progress, 'looking at the cluster', async (step) => {
    step.update(await kube.version());
    const seen = await observe(io, kube, flags, wanted);
    const said = decide(seen.facts);
    step.update(summary(said));
    return { findings: said, observed: seen };
  });
  for (const { check, outcome, text } of findings) {
    if (outcome === 'adapted' || (check === 'ranges' && outcome !== 'stop')) progress.note(`${check}: ${text}`);
    if (outcome === 'stop' && flags.ignoreCheck.includes(check)) progress.note(`${check}, ignored: ${text}`);
  }
  const refusal = refusalOf(stopsOf(findings, flags.ignoreCheck));
  if (refusal !== undefined) throw refusal;
  return {
    state: given(observed.state),
    network: given(observed.network),
    apiServerUrl: given(observed.apiServerUrl),
    platform: observed.facts.found.profile.settings,
    profile: observed.namedProfile,
  };
}

/** Some of what stops cannot be ignored: there is nothing to go on with. */
function given<T>(value: T | AppError): T {
  if (value instanceof AppError) throw value;
  return value;
}

export async function check(
  io: Pick<CliIo, 'clock'>,
  kube: KubeClient,
  flags: CheckFlags,
  wanted: Wanted,
): Promise<CheckReport> {
  const { facts } = await observe(io, kube, flags, wanted);
  return { kubernetes: facts.cluster.version, profile: facts.found.profile.name, findings: decide(facts) };
}

const outcomes = ['ok', 'adapted', 'unknown', 'stop'] as const satisfies readonly Finding['outcome'][];
const summary = (findings: readonly Finding[]): string =>
  outcomes
    .flatMap((outcome) => {
      const count = findings.filter((finding) => finding.outcome === outcome).length;
      return count === 0 ? [] : [`${count} ${outcome}`];
    })
    .join(', ');

/** Undefined: nothing stops. */
export function refusalOf(stops: readonly Stop[]): AppError | undefined {
  const [first, ...others] = stops;
  if (first === undefined) return undefined;
  if (others.length === 0)
    return new AppError(first.code, first.text, {
      detail: { ...first.detail, check: first.check, remedy: first.remedy },
    });
  return new AppError(
    'preflight_failed',
    `${stops.length} checks stop: ${stops.map(({ check: name, text }) => `${name}: ${text}`).join('; ')}`,
    {
      detail: {
        checks: stops.map(({ check: name, code }) => ({ check: name, code })),
        remedy: stops.map(({ check: name, remedy }) => `${name}: ${remedy}`).join('\n       '),
      },
    },
  );
}
