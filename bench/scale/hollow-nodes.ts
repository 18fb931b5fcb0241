/** Nodes without machines (kwok): pods bound to them run at once and cost nothing, so that what is measured is the control planes and us. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import type { KubeApi } from '#kube/model/types.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { eventually } from '#test/harness/eventually.ts';
import { buildKwok } from '#test/testbed/build.ts';

export const hollowLabel = 'bench.isthmus.dev/hollow';

export interface HollowOptions {
  readonly api: KubeApi;
  readonly kubeconfigPath: string;
  readonly nodes: number;
  readonly podsPerNode: number;
  /** Where addresses of hollow pods are taken from: a part of the cluster's pod range that no real node uses. */
  readonly podCidr: string;
  readonly logFile: string;
  readonly gcPercent: number;
  readonly log: (line: string) => void;
}

export interface HollowNodes {
  /** Of the process that plays their kubelets. */
  readonly pid: number;
  stop(): Promise<void>;
}

/** Of its four workers each waits for the API server's answer; a kubelet has one for each pod. */
const configuration = {
  apiVersion: 'config.kwok.x-k8s.io/v1alpha1',
  kind: 'KwokConfiguration',
  options: { podPlayStageParallelism: 64, nodePlayStageParallelism: 4 },
};

/** Resolves when all of them are Ready. */
export async function startHollowNodes(options: HollowOptions): Promise<HollowNodes> {
  const { api, kubeconfigPath, podsPerNode, podCidr, logFile, gcPercent, log } = options;
  const kwok = await buildKwok({ log });
  const names = Array.from({ length: options.nodes }, (_, i) => `hollow-${i + 1}`);
  for (const [index, name] of names.entries()) await api.create(nodes, hollowNode(name, index, podsPerNode));
  const configFile = `${logFile}.yaml`;
  writeFileSync(configFile, `${JSON.stringify(configuration)}\n`);
  const output = openSync(logFile, 'a');
  const child = spawn(
    kwok,
    [
      `--config=${configFile}`,
      `--kubeconfig=${kubeconfigPath}`,
      `--manage-nodes-with-label-selector=${hollowLabel}=true`,
      `--cidr=${podCidr}`,
      // Two busy cores may keep a renewal waiting; what happens then is not what is measured.
      '--node-lease-duration-seconds=240',
    ],
    { stdio: ['ignore', output, output], env: { ...process.env, GOGC: String(gcPercent) } },
  );
  closeSync(output);
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  const isReady = async (name: string): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`kwok ended with ${child.exitCode}; see ${logFile}`);
    const node = await api.get(nodes, { name });
    return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
  };
  for (const name of names) await eventually(`${name} is Ready`, () => isReady(name), { withinMs: 60_000 });
  return {
    pid: child.pid ?? 0,
    async stop() {
      process.off('exit', end);
      await ended(child);
    },
  };
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

function hollowNode(name: string, index: number, pods: number): Node {
  const amounts = { cpu: '2000', memory: '8Ti', pods: String(pods), 'ephemeral-storage': '1Ti' };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { [hollowLabel]: 'true', 'kubernetes.io/hostname': name } },
    // What is real, a gateway for one, must not be bound to what only plays.
    spec: { taints: [{ key: hollowLabel, value: 'true', effect: 'NoSchedule' }] },
    status: {
      allocatable: amounts,
      capacity: amounts,
      // Of a range for documentation: nothing answers there.
      addresses: [{ type: 'InternalIP', address: `192.0.2.${index + 1}` }],
    },
  } as unknown as Node;
}
