/** Which values of a manifest only the peer may decide, and whether they are those that it announced. Pure. */
import { readPublicKey } from '#agent/pki/cluster-keys.ts';
import { moveAddress } from '#shared/domain/cidr.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { name } from '#shared/domain/liqo-keys.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import type { Json } from '../kinds/kind.ts';
import { asObject, specOf, textOf } from '../kinds/manifest.ts';
import { type Announcement, caHashOf } from './announcement.ts';

export interface ProofInput {
  readonly set: Pick<DesiredSet, 'peer' | 'role'>;
  readonly self: string;
  readonly announcement: Announcement;
  /** The Configuration of this peer in this cluster, whose status says by which ranges the peer is known here. */
  readonly configuration: KubeObject | undefined;
}

export interface Unproven {
  readonly message: string;
  /** What it is compared with comes later: the ranges by which this cluster knows the peer. */
  readonly isEarly?: true;
}

type Check = (spec: Json, input: ProofInput) => string | Unproven | undefined;

const differs = (field: string, peer: string, found: unknown, announced: unknown): string =>
  `spec.${field} is ${textOf(found)}; ${peer} announced ${textOf(announced)}`;

const checks: Readonly<Record<string, Check>> = {
  Identity(spec, input) {
    const { announcement, set, self } = input;
    const { ca, apiServer, proxyURL } = asObject(spec.authParams);
    const { claims } = announcement;
    if (apiServer !== claims.apiServer) return differs('authParams.apiServer', set.peer, apiServer, claims.apiServer);
    const caHash = caHashOf(typeof ca === 'string' ? Buffer.from(ca, 'base64').toString() : '');
    if (caHash !== claims.caHash)
      return differs('authParams.ca', set.peer, `a bundle of SHA-256 ${caHash}`, `one of ${claims.caHash}`);
    if (asObject(spec.authParams).awsConfig !== undefined)
      return 'spec.authParams.awsConfig is not accepted from a broker';
    const home = name.tenantNamespace(self);
    if (spec.namespace !== home) return `spec.namespace is ${textOf(spec.namespace)}, accepted is ${home}`;
    return proxyFault(proxyURL, input);
  },
  Tenant(spec, { announcement, set }) {
    const { publicKey } = spec;
    if (typeof publicKey !== 'string' || !isKey(Buffer.from(publicKey, 'base64'), announcement))
      return differs('publicKey', set.peer, 'another key', announcement.fingerprint);
    return spec.authzPolicy === undefined || spec.authzPolicy === 'KeysExchange'
      ? undefined
      : `spec.authzPolicy is ${textOf(spec.authzPolicy)}; accepted from a broker is KeysExchange`;
  },
  Configuration(spec, { announcement, set }) {
    const { pod, external } = asObject(asObject(spec.remote).cidr);
    const { network } = announcement.claims;
    const isSame = network !== undefined && sameList(pod, network.pod) && sameList(external, network.external);
    return isSame ? undefined : differs('remote.cidr', set.peer, [pod, external], [network?.pod, network?.external]);
  },
  PublicKey(spec, { announcement, set }) {
    const { wireGuardKey } = announcement.claims;
    return wireGuardKey !== undefined && spec.publicKey === wireGuardKey
      ? undefined
      : differs('publicKey', set.peer, spec.publicKey, wireGuardKey ?? 'none yet');
  },
};

const sameList = (found: unknown, announced: readonly string[]): boolean =>
  Array.isArray(found) && found.length === announced.length && announced.every((range, at) => found[at] === range);

/** Read as the Tenant's controller reads it. */
function isKey(bytes: Uint8Array, { key }: Announcement): boolean {
  try {
    return readPublicKey(bytes).equals(key);
  } catch {
    return false;
  }
}

/** The proxy is announced by its address there; the consumer knows it by the range that it granted to the peer. */
function proxyFault(
  proxyURL: unknown,
  { announcement, set, configuration }: ProofInput,
): string | Unproven | undefined {
  if (proxyURL === undefined || proxyURL === '') return undefined;
  const { network } = announcement.claims;
  const at = network?.apiServerProxy?.lastIndexOf(':') ?? -1;
  const { cidr } = asObject(asObject((configuration as { status?: Json } | undefined)?.status).remote);
  const views = asObject(cidr).external;
  if (network?.apiServerProxy !== undefined && !Array.isArray(views))
    return {
      isEarly: true,
      message: `waits for the ranges by which ${set.peer} is known here, to compare its proxy with`,
    };
  const urls =
    network?.apiServerProxy === undefined || !Array.isArray(views)
      ? []
      : network.external.flatMap((range, i) => {
          const view: unknown = views[i];
          const proxy = network.apiServerProxy ?? '';
          const address = typeof view === 'string' ? moveAddress(proxy.slice(0, at), range, view) : undefined;
          return address === undefined ? [] : [`http://${address}${proxy.slice(at)}`];
        });
  return urls.includes(textOf(proxyURL))
    ? undefined
    : differs('authParams.proxyURL', set.peer, proxyURL, urls[0] ?? network?.apiServerProxy ?? 'none');
}

/** Undefined: proven, or of a kind in which the peer decides nothing. */
export function unproven(manifest: KubeManifest, input: ProofInput): Unproven | undefined {
  // `constructor` and the like are members of every object in JavaScript.
  const check = Object.hasOwn(checks, manifest.kind) ? checks[manifest.kind] : undefined;
  const fault = check?.(specOf(manifest), input);
  return typeof fault === 'string' ? { message: fault } : fault;
}
