/** The node process' configuration: read from the environment once, checked by hand, since a schema library would cost every node its memory. */
import { type MetricsSettings, metricsSettings } from '#agent/metrics/settings.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { cniFolders } from '../kernel/cni-evidence.ts';

export interface NodeAgentEnvironment {
  readonly node: string;
  readonly podName: string;
  readonly systemNamespace: string;
  /** The DaemonSet that this process belongs to: when it says goodbye, everything is swept. */
  readonly daemonSet: string;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  /** Absent: they are not served. */
  readonly metrics?: MetricsSettings;
  /** Undefined: as the CNI needs it. */
  readonly fullMasquerade?: boolean;
  /** Undefined: as the CNI needs it. */
  readonly rulePriority?: number;
  readonly apiHost?: string;
  readonly apiPort?: string;
  /** Where token, CA and namespace are mounted; default: where the kubelet mounts them. */
  readonly serviceAccountDirectory?: string;
  /** Where the CNI configuration of the node is seen. */
  readonly cniDirectories: readonly string[];
  /** Where the resolvers of the node are named; those that do not exist are skipped. */
  readonly resolverFiles: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** Fails with `invalid_input` naming every variable that is missing or wrong. */
export function loadNodeAgentEnvironment(env: Env): NodeAgentEnvironment {
  const faults: string[] = [];
  const oneOf = <T extends string>(name: string, accepted: readonly T[], fallback: T): T => {
    const value = env[name] || fallback;
    if (accepted.some((one) => one === value)) return value as T;
    faults.push(`${name} is ${JSON.stringify(value)}, accepted: ${accepted.join(', ')}`);
    return fallback;
  };
  const node = env.NODE_NAME ?? '';
  if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(node))
    faults.push(`NODE_NAME is ${JSON.stringify(node)}, accepted: the name of a Node`);
  const masquerade = oneOf('ISTHMUS_FULL_MASQUERADE', ['auto', 'true', 'false'], 'auto');
  const logLevel = oneOf('ISTHMUS_LOG_LEVEL', ['debug', 'info', 'warn', 'error'], 'info');
  const rulePriority = env.ISTHMUS_RULE_PRIORITY ? Number(env.ISTHMUS_RULE_PRIORITY) : undefined;
  if (rulePriority !== undefined && !(Number.isInteger(rulePriority) && rulePriority >= 1 && rulePriority <= 32_765))
    faults.push(
      `ISTHMUS_RULE_PRIORITY is ${JSON.stringify(env.ISTHMUS_RULE_PRIORITY)}, accepted: an integer from 1 to 32765`,
    );
  const metrics = metricsSettings(env, faults);
  if (faults.length > 0)
    throw new AppError('invalid_input', `the environment of the node process is not usable: ${faults.join('; ')}`);
  return Object.freeze({
    node,
    podName: env.POD_NAME || node,
    systemNamespace: env.ISTHMUS_SYSTEM_NAMESPACE || 'liqo',
    daemonSet: env.ISTHMUS_DAEMON_SET || 'isthmus-fabric',
    logLevel,
    ...(metrics === undefined ? {} : { metrics }),
    ...(masquerade === 'auto' ? {} : { fullMasquerade: masquerade === 'true' }),
    ...(rulePriority === undefined ? {} : { rulePriority }),
    ...(env.KUBERNETES_SERVICE_HOST ? { apiHost: env.KUBERNETES_SERVICE_HOST } : {}),
    ...(env.KUBERNETES_SERVICE_PORT ? { apiPort: env.KUBERNETES_SERVICE_PORT } : {}),
    ...(env.ISTHMUS_SERVICE_ACCOUNT_DIRECTORY
      ? { serviceAccountDirectory: env.ISTHMUS_SERVICE_ACCOUNT_DIRECTORY }
      : {}),
    cniDirectories: env.ISTHMUS_CNI_DIRECTORY
      ? [env.ISTHMUS_CNI_DIRECTORY]
      : cniFolders.map((folder) => `/proc/1/root${folder}`),
    // With systemd-resolved, the first names only its stub on loopback.
    resolverFiles: ['/proc/1/root/etc/resolv.conf', '/proc/1/root/run/systemd/resolve/resolv.conf'],
  });
}
