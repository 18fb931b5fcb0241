/** What a GatewayServer and a GatewayClient have in common: no field that reaches beyond the link, and no value that cannot be one. */
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { isthmusNetworkAnnotation, networkName } from '#shared/domain/network-keys.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import type { BrokerKind, Json } from './kind.ts';
import { asObject, specOf } from './manifest.ts';

const maxCandidates = 16;

export const gatewayAnnotations: readonly string[] = [
  isthmusNetworkAnnotation.peerCandidates,
  isthmusNetworkAnnotation.peerMtu,
];

/** A gateway's controller makes its Connection and its Secret, both under one name. */
export const broughtByGateway: NonNullable<BrokerKind['brings']> = ({ metadata }) =>
  ['Connection', 'Secret'].map((kind) => ({ kind, name: networkName.gateway(metadata.name) }));

/** Where the peer may find this side, as the gateway's controller says. */
export function candidatesOf({ metadata }: KubeObject): string[] {
  try {
    const list: unknown = JSON.parse(metadata.annotations?.[isthmusNetworkAnnotation.candidates] ?? '[]');
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

/** A name or an address; neither a path nor an option can be made of it. */
export const hostPattern = /^[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?$/;

export const isPort = (value: unknown): boolean =>
  Number.isInteger(value) && Number(value) > 0 && Number(value) <= 65_535;

interface GatewayEnd {
  /** Where the spec names the template, and which kind and name that template has. */
  readonly field: string;
  readonly kind: string;
  readonly name: string;
  readonly otherEnd: 'GatewayServer' | 'GatewayClient';
}

/** What is wrong with template, MTU and annotations, or that the set has both ends; undefined: nothing. */
export function checkGateway(manifest: KubeManifest, set: DesiredSet, end: GatewayEnd): string | undefined {
  const spec = specOf(manifest);
  return (
    checkTemplate(spec, end) ??
    checkMtu(spec) ??
    checkCandidates(manifest) ??
    checkPeerMtu(manifest) ??
    checkSingle(set, end.otherEnd)
  );
}

/** Only the template of the installation: a template decides what runs, and with which rights. */
function checkTemplate(spec: Json, { field, kind, name }: GatewayEnd): string | undefined {
  if (spec[field] === undefined) return undefined;
  const found = asObject(spec[field]);
  const wanted: Json = { apiVersion: 'networking.liqo.io/v1beta1', kind, name, namespace: systemNamespace };
  const wrong = [...Object.keys(wanted), ...Object.keys(found)].find((key) => found[key] !== wanted[key]);
  if (wrong === undefined) return undefined;
  return `spec.${field}.${wrong} is ${JSON.stringify(found[wrong])}; accepted is ${JSON.stringify(wanted[wrong])}`;
}

function checkMtu({ mtu }: Json): string | undefined {
  if (mtu === undefined || (Number.isInteger(mtu) && Number(mtu) >= 1280 && Number(mtu) <= 65_535)) return undefined;
  return `spec.mtu is ${JSON.stringify(mtu)}; accepted is 1280 to 65535`;
}

const isEndpoint = (value: unknown): boolean => {
  if (typeof value !== 'string') return false;
  const at = value.lastIndexOf(':');
  const port = value.slice(at + 1);
  return hostPattern.test(value.slice(0, at)) && /^[1-9][0-9]{0,4}$/.test(port) && isPort(Number(port));
};

function checkCandidates({ metadata }: KubeManifest): string | undefined {
  const key = isthmusNetworkAnnotation.peerCandidates;
  const text = metadata.annotations?.[key];
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

function checkPeerMtu({ metadata }: KubeManifest): string | undefined {
  const key = isthmusNetworkAnnotation.peerMtu;
  const text = metadata.annotations?.[key];
  if (text === undefined || (/^[1-9][0-9]{2,4}$/.test(text) && Number(text) >= 576 && Number(text) <= 65_535))
    return undefined;
  return `annotation ${key} is ${JSON.stringify(text)}; accepted is 576 to 65535`;
}

/** Both ends of one pair cannot be dialled, and both cannot dial. */
function checkSingle({ objects, peer }: DesiredSet, otherEnd: string): string | undefined {
  return objects.some(({ kind }) => kind === otherEnd)
    ? `there is a ${otherEnd} ${peer} too; accepted is one link for a pair`
    : undefined;
}
