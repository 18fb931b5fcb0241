/** Words that stand for what is another thing each time: keys, certificates, addresses, times. */
import { X509Certificate } from 'node:crypto';
import { readCertificateRequest } from '#agent/pki/certificate-request.ts';

/** Chosen by an API server, by chance or by the clock, and nothing that a peer goes by. */
const volatile = new Set([
  'uid',
  'resourceVersion',
  'generation',
  'observedGeneration',
  'creationTimestamp',
  'managedFields',
  'deletionGracePeriodSeconds',
  'lastTransitionTime',
  'lastProbeTime',
  'startTime',
  'startedAt',
  'finishedAt',
]);

/** Of pods, which addresses and containers a node gives; `$HostIp` with the name of the cluster before it. */
const byKey: Readonly<Record<string, string>> = {
  kubeconfig: '$any',
  deletionTimestamp: '$any',
  podIP: '$podIp',
  containerID: '$container',
  imageID: '$imageId',
  nonce: '$nonce',
  signature: '$signature',
  signedNonce: '$signature',
};

/** The text in a base64 one, when it is a PEM block of that label. */
function pemOf(label: string, text: string): string | undefined {
  const decoded = Buffer.from(text, 'base64').toString();
  return decoded.startsWith(`-----BEGIN ${label}-----`) ? decoded : undefined;
}

function subjectOf(certificate: string): string {
  const lines = new X509Certificate(certificate).subject.split('\n');
  const of = (key: string): string => lines.find((line) => line.startsWith(`${key}=`))?.slice(key.length + 1) ?? '';
  return `${of('CN')} ${of('O')}`;
}

export class Words {
  readonly #known: ReadonlyMap<string, string>;
  /** Certificates of a subject in the order in which they were seen. */
  readonly #certificates = new Map<string, string[]>();

  /** `known`: texts by what they are called, without a dollar sign. */
  constructor(known: Readonly<Record<string, string>>) {
    this.#known = new Map(Object.entries(known).map(([name, text]) => [text, `$${name}`]));
  }

  /** The value, of an object in the cluster `at`, in words; undefined where there is nothing to say of it. */
  of(value: unknown, at: string, key = ''): unknown {
    if (typeof value === 'string') return this.#text(value, at, key);
    if (Array.isArray(value))
      return value.map((one) => this.of(one, at, key === 'podIPs' ? 'podIP' : key === 'hostIPs' ? 'hostIP' : key));
    if (typeof value !== 'object') return value;
    if (value === null) return undefined;
    const entries = Object.entries(value)
      .filter(([name]) => !volatile.has(name) && !name.endsWith('last-applied-configuration'))
      .map(([name, one]) => [name, this.of(one, at, name === 'ip' ? key : name)] as const)
      .filter(([, one]) => one !== undefined);
    return Object.fromEntries(entries);
  }

  #text(text: string, at: string, key: string): string | undefined {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const certificate = pemOf('CERTIFICATE', text);
    if (certificate !== undefined) return this.#certificate(text, subjectOf(certificate));
    const request = pemOf('CERTIFICATE REQUEST', text);
    if (request !== undefined) {
      const { commonName, organization } = readCertificateRequest(request);
      return `$request ${commonName} ${organization}`;
    }
    if (pemOf('PUBLIC KEY', text) !== undefined) return '$publicKey';
    if (text === '') return text;
    return key === 'hostIP' ? `$${at}HostIp` : (byKey[key] ?? text);
  }

  /** The first of a subject has no number, the one that renews it is number 2. */
  #certificate(text: string, subject: string): string {
    const seen = this.#certificates.get(subject) ?? [];
    this.#certificates.set(subject, seen);
    if (!seen.includes(text)) seen.push(text);
    const number = seen.indexOf(text) + 1;
    return `$certificate ${subject}${number === 1 ? '' : ` ${number}`}`;
  }
}
