/** What `join` and `install` are told on the command line. */

import type { ProfileName } from '#cli/platform/profiles.ts';

import type { CredentialSetting } from '#shared/domain/credential-setting.ts';

import type { NodeProcess } from '#shared/domain/network-keys.ts';
import type { MetricsAccess } from './metrics-manifests.ts';

export interface InstallFlags {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly image?: string;
  readonly apiServerUrl?: string;
  readonly replicas?: number;
  readonly labels: Record<string, string>;
  readonly sharePercent?: number;
  readonly credentials?: CredentialSetting;
  readonly network: boolean;
  readonly storage: boolean;
  readonly storageClass?: string;
  readonly capacityStorageClass?: string;
  readonly defaultStorageClass?: boolean;
  readonly localStorageClass?: string;
  readonly podCidr: readonly string[];
  readonly serviceCidr?: string;
  readonly externalCidr?: string;
  readonly internalCidr?: string;
  readonly reservedSubnet: readonly string[];
  readonly gatewayReplicas?: number;
  readonly fullMasquerade?: boolean;
  readonly nodeProcess?: NodeProcess;
  /** Besides those that are installed. */
  readonly webhookCallers?: readonly string[];
  /** false: none; absent: what is installed. */
  readonly metrics?: MetricsAccess | false;
  readonly profile?: ProfileName;
  /** Names of checks that may stop without effect. */
  readonly ignoreCheck: readonly string[];
  /** Put back what was there when the new agent does not become ready. */
  readonly rollback: boolean;
  /** Print what would be applied, and apply nothing. */
  readonly output?: 'json' | 'yaml';
  readonly timeout: string;
}
