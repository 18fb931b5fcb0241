/** What a check before the installation came to. */
import type { ProfileName } from '#cli/platform/profiles.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';

export const checks = [
  'version',
  'platform',
  'nodes',
  'kernel',
  'rights',
  'agent',
  'credentials',
  'pod-security',
  'cni',
  'ranges',
  'api-url',
  'gateways',
  'webhooks',
  'clock',
] as const;
export type CheckName = (typeof checks)[number];

interface Said {
  readonly check: CheckName;
  readonly text: string;
}

export type Finding =
  | (Said & { readonly outcome: 'ok' })
  /** The installation does something about it by itself, or works around it; the text says what. */
  | (Said & { readonly outcome: 'adapted' })
  /** Nothing in the cluster tells it before something runs there. */
  | (Said & { readonly outcome: 'unknown' })
  /** Nothing is installed until it is mended, or ignored by its name. */
  | (Said & {
      readonly outcome: 'stop';
      readonly code: ErrorCode;
      /** With the command that mends it. */
      readonly remedy: string;
      readonly detail?: Readonly<Record<string, unknown>>;
    });

export type Stop = Extract<Finding, { outcome: 'stop' }>;

export interface CheckReport {
  readonly kubernetes: string;
  readonly profile: ProfileName;
  readonly findings: readonly Finding[];
}

export const stopsOf = (findings: readonly Finding[], ignored: readonly string[] = []): Stop[] =>
  findings.filter((finding): finding is Stop => finding.outcome === 'stop' && !ignored.includes(finding.check));
