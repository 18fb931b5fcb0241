/**
 * The order of the rooms. A file imports, values and types, only from its own line and the lines above it. Between the folders of one line,
 * values flow from left to right only. A folder includes those below it that are not named themselves; the name of a whole room stands for the
 * files at its root, its wiring, which nothing on the line imports.
 */
import path from 'node:path';
import type { Import } from './import-graph.ts';

type Layer = readonly string[];

const line = (room: string, ...folders: readonly string[]): Layer =>
  folders.map((folder) => (folder === '' ? room : `${room}/${folder}`));

const shared: readonly Layer[] = [
  line('shared', 'errors', 'domain', 'ports'),
  line('shared/schema', 'protocol', 'definition', 'api', 'isthmus', 'liqo', ''),
  line('shared', 'async', 'api-client', 'metrics', 'archive'),
];

const kube: readonly Layer[] = [
  line('kube', 'model'),
  line('kube', 'http'),
  line('kube', 'cache'),
  line('kube', 'writes'),
  line('kube', 'run'),
  line('kube', ''),
];

const agent: readonly Layer[] = [
  line('agent', 'runtime'),
  line('agent', 'pki'),
  line('agent', 'model'),
  line('agent', 'admission'),
  line('agent', 'metrics'),
  line(
    'agent/network',
    'addresses',
    'ipam',
    'model',
    'kernel',
    'link',
    'objects',
    'plan',
    'probe',
    'ranges',
    'gateway',
    'node',
    'overlay',
    'admission',
    '',
  ),
  line('agent/reflection', 'model', 'kinds', 'engine', 'events', 'tokens', ''),
  line(
    'agent/peering',
    'model',
    'rights',
    'keys',
    'manifest-faults',
    'admission',
    'replication',
    'foreign-cluster',
    'identity',
    'nonce',
    'renewal',
    'credentials',
    'tenant',
    'slices',
    '',
  ),
  line('agent/storage', 'model', 'capacity', 'providers', 'snapshots', 'binding', 'volumes', 'mover', 'moves', ''),
  line(
    'agent/offloading/provider',
    'model',
    'guests',
    'departures',
    'storage',
    'snapshots',
    'quota',
    'endpoints',
    'namespaces',
    'admission',
    'shadow-pods',
  ),
  line(
    'agent/offloading/consumer',
    'claims',
    'kubelet-api',
    'node-removal',
    'pods',
    'scheduling-gate',
    'namespaces',
    'admission',
    'virtual-node',
  ),
  line('agent/offloading', ''),
  line('agent', 'api-proxy'),
  line('agent/broker', 'kinds', 'requests', 'session', 'trust', 'sync', ''),
  line('agent', ''),
];

const control: readonly Layer[] = [
  line('control', 'ports', 'access'),
  line('control', 'model'),
  line('control', 'store'),
  line('control', 'input'),
  line('control', 'events', 'audit', 'labels', 'limits', 'idempotency', 'directory', 'clusters'),
  line(
    'control/peerings',
    'core',
    'terms',
    'link',
    'state-machine',
    'cross-tenant',
    'samples',
    'coordinator',
    'use-cases',
    'agent-exchange',
  ),
  line('control', 'invitations', 'requests', 'tenants', 'webhooks', 'adapters'),
  line('control', ''),
];

const functions: readonly Layer[] = [
  line('functions', 'runtime'),
  line('functions', 'api', 'channel', 'events', 'schedule'),
  line('functions', ''),
  line('functions', 'local'),
];

const cli: readonly Layer[] = [
  line('cli', 'output'),
  line('cli', 'cluster'),
  line('cli', 'platform'),
  line(
    'cli',
    'broker',
    'install',
    'preflight',
    'gitops',
    'lock',
    'network-test',
    'offload',
    'peerings',
    'status',
    'doctor',
    'support',
  ),
  line('cli', 'commands'),
  line('cli', ''),
];

const page: readonly Layer[] = [
  line('console', 'model'),
  line('console', 'data'),
  line('console', 'parts'),
  line('console', 'map'),
  line('console', 'pages'),
  line('console', ''),
];

const infra: readonly Layer[] = [line('infra', 'rules', 'constructs', 'stacks', '')];

/** By root folder. What a root may import of another one is said by `importLaw`. */
const layers: readonly (readonly Layer[])[] = [shared, kube, agent, control, functions, infra, cli, page];

interface Place {
  readonly folder: string;
  readonly line: number;
  /** Position on the line. */
  readonly at: number;
}

const places: readonly Place[] = layers.flatMap((lines) =>
  lines.flatMap((folders, at) => folders.map((folder, position) => ({ folder, line: at, at: position }))),
);

const rootOf = (file: string): string => file.slice(0, file.indexOf('/'));

/** Undefined: the folder is in no line. */
export function placeOf(file: string): Place | undefined {
  for (let folder = path.posix.dirname(file); folder !== '.'; folder = path.posix.dirname(folder)) {
    const found = places.find((place) => place.folder === folder);
    // The root of a room stands for its own files only, unless the room is named nowhere else.
    if (found !== undefined) return isWiring(found.folder) && folder !== path.posix.dirname(file) ? undefined : found;
  }
  return undefined;
}

const isWiring = (folder: string): boolean => places.some((place) => place.folder.startsWith(`${folder}/`));

/** Undefined: the import is in order. */
export function breachOf({ from, to, typeOnly }: Import): string | undefined {
  if (rootOf(from) !== rootOf(to)) return undefined;
  const [own, other] = [placeOf(from), placeOf(to)];
  if (own === undefined || other === undefined) return undefined;
  if (other.line > own.line) return `${from} imports ${to}, which is below it`;
  if (other.line === own.line && other.at > own.at && !typeOnly) return `${from} imports ${to}, which is to its right`;
  return undefined;
}
