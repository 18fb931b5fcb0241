/** What a bed's clusters look like: names, addresses and ranges, computed and checked before anything is made. */
import { AppError } from '#shared/errors/app-error.ts';
import { type VpcNode, vpcNode } from './cni/vpc-plan.ts';

/** Of which Kubernetes clusters may be besides the usual one; each has its modules in `kubebox/versions`. */
export const otherKubernetes = ['1.30'] as const;
export type OtherKubernetes = (typeof otherKubernetes)[number];
export const isOtherKubernetes = (version: string): version is OtherKubernetes =>
  otherKubernetes.some((one) => one === version);

/** What pods of clusters may have in place of the bed's own bridge. `vpc`: the Amazon VPC CNI, and around the nodes a VPC. */
export const otherCnis = ['flannel-host-gw', 'flannel-vxlan', 'vpc'] as const;
export type OtherCni = (typeof otherCnis)[number];
export const isOtherCni = (name: string): name is OtherCni => otherCnis.some((one) => one === name);

export interface ClusterRequest {
  readonly name: string;
  /** One to three; one when absent. */
  readonly nodes?: number;
  /** An IPv4 range of /16 to /22; each node gets a /24 of it. Two clusters may use the same. */
  readonly podCidr?: string;
  readonly serviceCidr?: string;
  /** How far heaps of the control plane grow between two collections, in percent: 400 unless told. More takes memory and spares processor time. */
  readonly gcPercent?: number;
  /** Of kube-apiserver; they win over the bed's own. */
  readonly apiServerFlags?: readonly string[];
  /** True: volumes of files behind loop devices, by the StorageClasses of `storage-addons.ts`; false unless told. */
  readonly storage?: boolean;
  /** With `storage`: GiB that all volumes of a node have together, written or not: 8 unless told. */
  readonly storageGiB?: number;
  /** The longest delay before the kubelet starts a container again that keeps ending, in whole seconds from 1 to 300: 300 unless told. */
  readonly restartDelaySeconds?: number;
  /** Absent: the usual one. */
  readonly kubernetes?: OtherKubernetes;
  /** Absent: the bed's bridge. With `vpc`, `podCidr` is the range of the VPC, of which pods and nodes share the first /24. */
  readonly cni?: OtherCni;
}

export interface NodeSpec {
  /** `<cluster>-<number>`. */
  readonly name: string;
  /** In the internet. */
  readonly ip: string;
  /** Not of a node in a VPC. */
  readonly podCidr?: string;
  /** Its interface in the internet namespace; with what the interface is called in the node, that in its VPC's router. */
  readonly link: string;
  /** Its addresses for itself and its pods, where it is in a VPC. */
  readonly vpc?: VpcNode;
}

/** What the node calls itself. */
export const nodeAddress = ({ ip, vpc }: NodeSpec): string => vpc?.ip ?? ip;

export interface ClusterSpec {
  readonly name: string;
  /** Of the bed; decides addresses and interface names. */
  readonly index: number;
  readonly gateway: string;
  readonly bridge: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  readonly serviceIp: string;
  readonly dnsIp: string;
  readonly gcPercent?: number;
  readonly apiServerFlags?: readonly string[];
  readonly storage?: true;
  readonly storageGiB?: number;
  readonly restartDelaySeconds?: number;
  readonly kubernetes?: OtherKubernetes;
  readonly cni?: OtherCni;
  readonly nodes: readonly NodeSpec[];
}

/** Of every component, where Go's own is 100: control planes that mostly wait take a third less processor time for 100 MiB more. */
export const usualGcPercent = 400;

/** Of the sizes of all volumes of a node, which are sparse files. */
export const usualStorageGiB = 8;
/** The kubelet's own limit of its back-off. */
const usualRestartDelaySeconds = 300;

/** Whether a cluster is of a Kubernetes 1.x older than `minor`; the usual one never is. */
export const isBefore = ({ kubernetes }: Pick<ClusterSpec, 'kubernetes'>, minor: number): boolean =>
  kubernetes !== undefined && Number(kubernetes.slice(2)) < minor;

/** Beds of one machine get a slot each: a sixteenth part of 198.18.0.0/16 or 198.19.0.0/16 is their "internet". */
export const slotCount = 32;
export const maxClusters = 15;
const maxNodes = 3;
const internet = '198.18.0.0/15';

interface Range {
  readonly first: number;
  readonly prefix: number;
}

const toNumber = (ip: string): number => ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
const toAddress = (value: number): string =>
  [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');

export function parseRange(text: string): Range | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (!match) return undefined;
  const prefix = Number(match[5]);
  if (prefix > 32 || match.slice(1, 5).some((part) => Number(part) > 255)) return undefined;
  const first = toNumber(match.slice(1, 5).join('.'));
  return first % 2 ** (32 - prefix) === 0 ? { first, prefix } : undefined;
}

const overlaps = (a: Range, b: Range): boolean => {
  const size = 2 ** (32 - Math.min(a.prefix, b.prefix));
  return Math.floor(a.first / size) === Math.floor(b.first / size);
};

function checkedRange(field: string, text: string, least: number, most: number): Range {
  const range = parseRange(text);
  if (!range || range.prefix < least || range.prefix > most) {
    const accepted = `an IPv4 range with a prefix from /${least} to /${most} and no host bits, like 10.1.0.0/16`;
    throw new AppError('invalid_input', `${field} is ${JSON.stringify(text)}: ${accepted} is accepted`, {
      detail: { field, value: text },
    });
  }
  return range;
}

/** The address number `host` in network `index` of a slot. Network 0 joins host and internet, networks 1 to 15 belong to clusters. */
export function internetAddress(slot: number, index: number, host: number): string {
  return toAddress(toNumber('198.18.0.0') + slot * 4096 + index * 256 + host);
}

export const slotRange = (slot: number): string => `${internetAddress(slot, 0, 0)}/20`;

export function planCluster(slot: number, index: number, request: ClusterRequest): ClusterSpec {
  const { name } = request;
  if (!/^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$/.test(name)) {
    const accepted = 'lower-case letters, digits and dashes, starting with a letter, at most 30';
    throw new AppError('invalid_input', `the cluster name ${JSON.stringify(name)} is not usable: ${accepted}`, {
      detail: { value: name },
    });
  }
  const nodes = request.nodes ?? 1;
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > maxNodes) {
    throw new AppError('invalid_input', `nodes is ${nodes}: a whole number from 1 to ${maxNodes} is accepted`);
  }
  const { gcPercent } = request;
  if (gcPercent !== undefined && !(Number.isInteger(gcPercent) && gcPercent >= 10 && gcPercent <= 10_000)) {
    throw new AppError('invalid_input', `gcPercent is ${gcPercent}: a whole number from 10 to 10000 is accepted`);
  }
  const { restartDelaySeconds } = request;
  if (
    restartDelaySeconds !== undefined &&
    !(Number.isInteger(restartDelaySeconds) && restartDelaySeconds >= 1 && restartDelaySeconds <= 300)
  ) {
    throw new AppError(
      'invalid_input',
      `restartDelaySeconds is ${restartDelaySeconds}: a whole number from 1 to 300 is accepted`,
    );
  }
  const { storageGiB } = request;
  if (storageGiB !== undefined && !(request.storage && Number.isInteger(storageGiB) && storageGiB > 0))
    throw new AppError(
      'invalid_input',
      `storageGiB is ${storageGiB}: a whole number above 0 is accepted, with \`storage: true\``,
    );
  if (request.restartDelaySeconds !== undefined && isBefore(request, 32)) {
    throw new AppError(
      'invalid_input',
      `restartDelaySeconds is ${restartDelaySeconds}: Kubernetes ${request.kubernetes} has no such setting`,
    );
  }
  const { cni } = request;
  if (cni !== undefined && !isOtherCni(cni)) {
    throw new AppError(
      'invalid_input',
      `cni is ${JSON.stringify(cni)}: ${otherCnis.join(', ')} are accepted, and none for the bed's bridge`,
      { detail: { field: 'cni', value: cni } },
    );
  }
  const podCidr = request.podCidr ?? `10.${index}.0.0/16`;
  const serviceCidr = request.serviceCidr ?? `10.${100 + index}.0.0/16`;
  const pods = checkedRange(`podCidr of ${name}`, podCidr, 8, 22);
  const services = checkedRange(`serviceCidr of ${name}`, serviceCidr, 12, 24);
  const reserved = checkedRange('internet', internet, 15, 15);
  for (const [what, a, b] of [
    [`podCidr ${podCidr} and serviceCidr ${serviceCidr}`, pods, services],
    [`podCidr ${podCidr} and the bed's own ${internet}`, pods, reserved],
    [`serviceCidr ${serviceCidr} and the bed's own ${internet}`, services, reserved],
  ] as const) {
    if (overlaps(a, b)) throw new AppError('invalid_input', `${what} of cluster ${name} overlap: choose another range`);
  }
  return {
    name,
    index,
    gateway: internetAddress(slot, index, 1),
    bridge: `c${index}`,
    podCidr,
    serviceCidr,
    serviceIp: toAddress(services.first + 1),
    dnsIp: toAddress(services.first + 10),
    ...(gcPercent === undefined ? {} : { gcPercent }),
    ...(request.apiServerFlags === undefined ? {} : { apiServerFlags: request.apiServerFlags }),
    ...(request.storage ? { storage: true } : {}),
    ...(storageGiB === undefined ? {} : { storageGiB }),
    ...(restartDelaySeconds === undefined ? {} : { restartDelaySeconds }),
    ...(request.kubernetes === undefined ? {} : { kubernetes: request.kubernetes }),
    ...(cni === undefined ? {} : { cni }),
    nodes: Array.from({ length: nodes }, (_, i) => ({
      name: `${name}-${i + 1}`,
      ip: internetAddress(slot, index, 11 + i),
      ...(cni === 'vpc' ? { vpc: vpcNode(podCidr, i) } : { podCidr: `${toAddress(pods.first + i * 256)}/24` }),
      link: `c${index}n${i + 1}`,
    })),
  };
}

type Wanted = string | number | boolean;

/** Whether a cluster that exists is what is asked for now; what is not asked for does not matter. */
export function differsFrom(existing: ClusterSpec, request: ClusterRequest): string | undefined {
  const wanted: readonly (readonly [string, Wanted, Wanted | undefined])[] = [
    ['nodes', existing.nodes.length, request.nodes],
    ['podCidr', existing.podCidr, request.podCidr],
    ['serviceCidr', existing.serviceCidr, request.serviceCidr],
    ['gcPercent', existing.gcPercent ?? usualGcPercent, request.gcPercent],
    ['apiServerFlags', (existing.apiServerFlags ?? []).join(' '), request.apiServerFlags?.join(' ')],
    ['storage', existing.storage ?? false, request.storage],
    ['storageGiB', existing.storageGiB ?? usualStorageGiB, request.storageGiB],
    ['kubernetes', existing.kubernetes ?? 'of the usual version', request.kubernetes],
    ['cni', existing.cni ?? "of the bed's bridge", request.cni],
    ['restartDelaySeconds', existing.restartDelaySeconds ?? usualRestartDelaySeconds, request.restartDelaySeconds],
  ];
  const other = wanted.find(([, is, requested]) => requested !== undefined && requested !== is);
  return other && `${existing.name} is up with ${other[0]} ${other[1]}, asked for ${other[2]}: take it down first`;
}
