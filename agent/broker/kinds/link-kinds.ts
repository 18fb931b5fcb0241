/** What this cluster accepts from a broker about its links: no field that reaches beyond the link, and no value that cannot be one. */
import type { Rule } from '#agent/broker/kinds/rule.ts';
import { rangeProblem } from '#shared/domain/cidr.ts';
import { label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { isthmusNetworkAnnotation, networkLabel, networkName } from '#shared/domain/network-keys.ts';
import type { DesiredSet, KubeManifest, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';

type Json = Record<string, unknown>;
const asObject = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});
const specOf = (manifest: KubeManifest): Json => asObject((manifest as Json).spec);

const maxCandidates = 16;
const maxRanges = 32;
const serviceTypes: readonly unknown[] = ['LoadBalancer', 'NodePort', 'ClusterIP'];

const stray = (value: Json, accepted: readonly string[], where: string): string | undefined => {
  const field = Object.keys(value).find((key) => !accepted.includes(key));
  return field === undefined ? undefined : `${where}.${field} is not accepted from a broker`;
};

const isPort = (value: unknown): boolean => Number.isInteger(value) && Number(value) > 0 && Number(value) <= 65_535;

/** A name or an address; neither a path nor an option can be made of it. */
const host = /^[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?$/;

const isEndpoint = (value: unknown): boolean => {
  if (typeof value !== 'string') return false;
  const at = value.lastIndexOf(':');
  return (
    host.test(value.slice(0, at)) &&
    /^[1-9][0-9]{0,4}$/.test(value.slice(at + 1)) &&
    isPort(Number(value.slice(at + 1)))
  );
};

function checkCandidates(manifest: KubeManifest): string | undefined {
  const key = isthmusNetworkAnnotation.peerCandidates;
  const text = manifest.metadata.annotations?.[key];
  if (text === undefined) return undefined;
  const accepted = `accepted is a JSON array of at most ${maxCandidates} texts address:port`;
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return `annotation ${key} is no JSON; ${accepted}`;
  }
  if (!Array.isArray(list) || list.length > maxCandidates) return `annotation ${key}: ${accepted}`;
  const wrong = list.find((one) => !isEndpoint(one));
  return wrong === undefined ? undefined : `annotation ${key} has ${JSON.stringify(wrong)}; ${accepted}`;
}

function checkPeerMtu(manifest: KubeManifest): string | undefined {
  const key = isthmusNetworkAnnotation.peerMtu;
  const text = manifest.metadata.annotations?.[key];
  if (text === undefined || (/^[1-9][0-9]{2,4}$/.test(text) && Number(text) >= 576 && Number(text) <= 65_535))
    return undefined;
  return `annotation ${key} is ${JSON.stringify(text)}; accepted is 576 to 65535`;
}

function checkMtu(spec: Json): string | undefined {
  const { mtu } = spec;
  if (mtu === undefined || (Number.isInteger(mtu) && Number(mtu) >= 1280 && Number(mtu) <= 65_535)) return undefined;
  return `spec.mtu is ${JSON.stringify(mtu)}; accepted is 1280 to 65535`;
}

/** Only what the installation brought: a template decides what runs, and with which rights. */
function checkTemplate(spec: Json, field: string, kind: string, template: string): string | undefined {
  if (spec[field] === undefined) return undefined;
  const found = asObject(spec[field]);
  const wanted: Json = { apiVersion: 'networking.liqo.io/v1beta1', kind, name: template, namespace: systemNamespace };
  const wrong = [...Object.keys(wanted), ...Object.keys(found)].find((key) => found[key] !== wanted[key]);
  if (wrong === undefined) return undefined;
  return `spec.${field}.${wrong} is ${JSON.stringify(found[wrong])}; accepted is ${JSON.stringify(wanted[wrong])}`;
}

/** Both ends of one pair cannot be dialled, and both cannot dial. */
function checkSingle(manifest: KubeManifest, set: DesiredSet): string | undefined {
  const other = manifest.kind === 'GatewayServer' ? 'GatewayClient' : 'GatewayServer';
  return set.objects.some(({ kind }) => kind === other)
    ? `there is a ${other} ${set.peer} too; accepted is one link for a pair`
    : undefined;
}

function checkServer(manifest: KubeManifest, set: DesiredSet): string | undefined {
  const spec = specOf(manifest);
  const endpoint = asObject(spec.endpoint);
  if (!isPort(endpoint.port)) return `spec.endpoint.port is ${JSON.stringify(endpoint.port)}; accepted is 1 to 65535`;
  if (!serviceTypes.includes(endpoint.serviceType))
    return `spec.endpoint.serviceType is ${JSON.stringify(endpoint.serviceType)}; accepted is ${serviceTypes.join(', ')}`;
  return (
    stray(endpoint, ['port', 'serviceType'], 'spec.endpoint') ??
    checkTemplate(spec, 'serverTemplateRef', 'WgGatewayServerTemplate', networkName.serverTemplate) ??
    checkMtu(spec) ??
    checkCandidates(manifest) ??
    checkPeerMtu(manifest) ??
    checkSingle(manifest, set)
  );
}

function checkClient(manifest: KubeManifest, set: DesiredSet): string | undefined {
  const spec = specOf(manifest);
  const endpoint = asObject(spec.endpoint);
  const addresses = Array.isArray(endpoint.addresses) ? (endpoint.addresses as unknown[]) : [];
  const wrong = addresses.length === 0 ? 'none' : addresses.find((one) => typeof one !== 'string' || !host.test(one));
  if (wrong !== undefined)
    return `spec.endpoint.addresses has ${JSON.stringify(wrong)}; accepted are IP addresses or host names`;
  if (!isPort(endpoint.port)) return `spec.endpoint.port is ${JSON.stringify(endpoint.port)}; accepted is 1 to 65535`;
  if (endpoint.protocol !== undefined && endpoint.protocol !== 'UDP')
    return `spec.endpoint.protocol is ${JSON.stringify(endpoint.protocol)}; accepted is UDP`;
  return (
    stray(endpoint, ['addresses', 'port', 'protocol'], 'spec.endpoint') ??
    checkTemplate(spec, 'clientTemplateRef', 'WgGatewayClientTemplate', networkName.clientTemplate) ??
    checkMtu(spec) ??
    checkCandidates(manifest) ??
    checkPeerMtu(manifest) ??
    checkSingle(manifest, set)
  );
}

/** The ranges that a manifest says the peer has. */
export function announcedRanges(manifest: KubeManifest): readonly string[] {
  const cidr = asObject(asObject(specOf(manifest).remote).cidr);
  return [cidr.pod, cidr.external].flatMap((list) => (Array.isArray(list) ? list.map(String) : []));
}

function checkConfiguration(manifest: KubeManifest): string | undefined {
  const remote = asObject(specOf(manifest).remote);
  const cidr = asObject(remote.cidr);
  const unknown = stray(remote, ['cidr'], 'spec.remote') ?? stray(cidr, ['pod', 'external'], 'spec.remote.cidr');
  if (unknown !== undefined) return unknown;
  for (const field of ['pod', 'external'] as const) {
    const list = cidr[field];
    const where = `spec.remote.cidr.${field}`;
    if (!Array.isArray(list) || list.length === 0 || list.length > maxRanges)
      return `${where} is ${JSON.stringify(list)}; accepted is a list of 1 to ${maxRanges} ranges`;
    for (const range of list as unknown[]) {
      const problem = rangeProblem(String(range));
      if (problem !== undefined) return `${where} ${problem}`;
    }
  }
  return undefined;
}

function checkKey(manifest: KubeManifest): string | undefined {
  const { publicKey } = specOf(manifest);
  const bytes = typeof publicKey === 'string' ? Buffer.from(publicKey, 'base64') : undefined;
  if (bytes?.length === 32 && bytes.toString('base64') === publicKey && bytes.some((byte) => byte !== 0))
    return undefined;
  return 'spec.publicKey is no WireGuard key; accepted is base64 of 32 bytes, not all zero';
}

const both: readonly PeeringRole[] = ['consumer', 'provider'];
const rule = (spec: readonly string[], check: NonNullable<Rule['check']>, more: Partial<Rule> = {}): Rule => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  roles: both,
  names: (set) => [set.peer],
  namespaced: true,
  labels: [label.remoteClusterId, 'isthmus.dev/peering'],
  annotations: [],
  members: { spec },
  check,
  ...more,
});
const gateway = { annotations: [isthmusNetworkAnnotation.peerCandidates, isthmusNetworkAnnotation.peerMtu] };

export const linkRules: Readonly<Record<string, Rule>> = {
  Configuration: rule(['remote'], checkConfiguration),
  GatewayServer: rule(['serverTemplateRef', 'mtu', 'endpoint'], checkServer, gateway),
  GatewayClient: rule(['clientTemplateRef', 'mtu', 'endpoint'], checkClient, gateway),
  PublicKey: rule(['publicKey'], checkKey, {
    labels: [label.remoteClusterId, 'isthmus.dev/peering', networkLabel.gatewayResource],
  }),
};
