/** Signatures and attestations in cosign's layout, by a key of the user: `cosign verify` and `cosign verify-attestation` take them. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { type Descriptor, describe, digestOf, jsonOf, mediaTypes } from './oci.ts';
import { artefactManifest } from './push.ts';
import type { Registry } from './registry.ts';

const types = {
  signature: 'application/vnd.dev.cosign.simplesigning.v1+json',
  envelope: 'application/vnd.dsse.envelope.v1+json',
  statement: 'application/vnd.in-toto+json',
} as const;
const annotation = 'dev.cosignproject.cosign/signature';

/** `pem`: an EC key of the curve P-256 in PKCS#8 or SEC1, encrypted with `passphrase` or not. */
export function readSigningKey(pem: string, file: string, passphrase?: string): KeyObject {
  const how =
    'accepted: an EC private key of the curve P-256 as PEM; make one with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out FILE`';
  const refused = (problem: string): AppError =>
    new AppError('invalid_input', `--key ${file} ${problem}; ${how}`, { detail: { field: 'key', value: file } });
  if (/ENCRYPTED (SIGSTORE|COSIGN) PRIVATE KEY/.test(pem)) throw refused("is encrypted in cosign's own format");
  if (/ENCRYPTED PRIVATE KEY/.test(pem) && passphrase === undefined)
    throw refused('is encrypted and COSIGN_PASSWORD is not set');
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, ...(passphrase !== undefined && { passphrase }) });
  } catch {
    throw refused('holds no readable private key');
  }
  if (key.asymmetricKeyType !== 'ec' || key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw refused(`is of the kind ${key.asymmetricKeyDetails?.namedCurve ?? key.asymmetricKeyType}`);
  return key;
}

export function loadSigningKey(file: string, passphrase?: string): KeyObject {
  if (!existsSync(file))
    throw new AppError('invalid_input', `--key ${file} does not exist`, { detail: { field: 'key', value: file } });
  return readSigningKey(readFileSync(file, 'utf8'), file, passphrase);
}

export interface Statement {
  readonly predicateType: string;
  readonly predicate: unknown;
}

/** Pushes the signature of `image`, beside those of other keys. `name` is HOST/REPOSITORY. */
export async function pushSignature(registry: Registry, name: string, image: string, key: KeyObject): Promise<void> {
  const critical = {
    identity: { 'docker-reference': name },
    image: { 'docker-manifest-digest': image },
    type: 'cosign container image signature',
  };
  const payload = jsonOf({ critical, optional: null });
  const signature = sign('sha256', payload, key).toString('base64');
  const layer = { ...describe(types.signature, payload), annotations: { [annotation]: signature } };
  const publicKey = createPublicKey(key);
  const isOurs = ({ digest, annotations }: Descriptor): boolean =>
    digest === layer.digest &&
    verify('sha256', payload, publicKey, Buffer.from(annotations?.[annotation] ?? '', 'base64'));
  await append(registry, tagOf(image, 'sig'), [{ layer, bytes: payload }], isOurs);
}

/** Pushes what is said about `image`, signed; it takes the place of what this function said before. */
export async function pushAttestations(
  registry: Registry,
  name: string,
  image: string,
  statements: readonly Statement[],
  key: KeyObject,
): Promise<void> {
  const subject = [{ name, digest: { sha256: image.slice('sha256:'.length) } }];
  const layers = statements.map(({ predicateType, predicate }) => {
    const payload = jsonOf({ _type: 'https://in-toto.io/Statement/v0.1', predicateType, subject, predicate });
    const signatures = [{ keyid: '', sig: sign('sha256', preAuthentication(payload), key).toString('base64') }];
    const bytes = jsonOf({ payloadType: types.statement, payload: payload.toString('base64'), signatures });
    const annotations = { [annotation]: '', predicateType };
    return { layer: { ...describe(types.envelope, bytes), annotations }, bytes };
  });
  const renewed = new Set(statements.map(({ predicateType }) => predicateType));
  await append(registry, tagOf(image, 'att'), layers, ({ annotations }) =>
    renewed.has(annotations?.predicateType ?? ''),
  );
}

const tagOf = (image: string, kind: 'sig' | 'att'): string => `${image.replace(':', '-')}.${kind}`;

/** What DSSE signs: the type and the payload, each with its length. */
export function preAuthentication(payload: Uint8Array): Buffer {
  const head = `DSSEv1 ${types.statement.length} ${types.statement} ${payload.length} `;
  return Buffer.concat([Buffer.from(head), payload]);
}

interface Layer {
  readonly layer: Descriptor;
  readonly bytes: Uint8Array;
}

async function append(
  registry: Registry,
  tag: string,
  added: readonly Layer[],
  isReplaced: (layer: Descriptor) => boolean,
): Promise<void> {
  const existing = await registry.getManifest(tag, mediaTypes.manifest);
  const { layers: present = [] } = existing
    ? (JSON.parse(existing.toString()) as { layers?: readonly Descriptor[] })
    : {};
  const layers = [...present.filter((layer) => !isReplaced(layer)), ...added.map(({ layer }) => layer)];
  const zero = '0001-01-01T00:00:00Z';
  const config = jsonOf({
    architecture: '',
    created: zero,
    history: layers.map(() => ({ created: zero })),
    os: '',
    rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
    config: {},
  });
  for (const bytes of [...added.map((each) => each.bytes), config]) {
    const digest = digestOf(bytes);
    if (!(await registry.hasBlob(digest))) await registry.putBlob(digest, bytes);
  }
  const manifest = artefactManifest(describe(mediaTypes.config, config), layers);
  await registry.putManifest(tag, mediaTypes.manifest, manifest);
}
