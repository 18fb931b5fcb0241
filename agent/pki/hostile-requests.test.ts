/** Certificate requests of hostile consumers: generated and damaged ones, against a model of what is accepted. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AppError } from '#shared/errors/app-error.ts';
import { countOf } from '#test/harness/cases.ts';
import { slowest } from '#test/harness/slowest.ts';
import { readCertificateRequest } from './certificate-request.ts';
import { type DerNode, encode, oid, readAll, tag } from './der.ts';
import { writePem } from './pem.ts';

const runs = countOf(20_000, 300);
const bytes = (length = 24) => fc.uint8Array({ maxLength: length });

/** Undefined for an AppError with a code that an author of a request may see; anything else thrown is a crash. */
function refusalOr<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'invalid_input') throw error;
    return undefined;
  }
}

const again = ({ tag: type, content }: DerNode): Uint8Array => encode(type, content);

test('bytes are read as DER only if writing what was read gives the same bytes', () => {
  const type = fc.constantFrom<number>(...Object.values(tag), 0x1f, 0x00);
  const { tree } = fc.letrec<{ tree: Uint8Array }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.tuple(type, bytes()).map(([t, content]) => encode(t, content)),
      fc.tuple(type, fc.array(tie('tree'), { maxLength: 4 })).map(([t, parts]) => encode(t, ...parts)),
    ),
  }));
  const damaged = fc.tuple(tree, fc.nat(), fc.nat(255), bytes(3)).map(([whole, at, value, tail]) => {
    const out = Buffer.concat([whole, tail]);
    out[at % out.length] = value;
    return out;
  });
  const watch = slowest('DER');
  fc.assert(
    fc.property(fc.oneof(tree, damaged, bytes(64)), (input) => {
      const nodes = watch(() => refusalOr(() => readAll(input)));
      if (nodes !== undefined) expect(Buffer.concat(nodes.map(again)).equals(input)).toBe(true);
    }),
    { numRuns: runs },
  );
}, 900_000);

interface Parts {
  readonly version: Uint8Array;
  readonly subject: readonly (readonly [type: string, valueTag: number, value: string])[];
  readonly key: Uint8Array;
  readonly attributes: readonly Uint8Array[];
  readonly algorithm: string;
  readonly parameters: readonly Uint8Array[];
  readonly signature: (info: Uint8Array) => Uint8Array;
  readonly after: readonly Uint8Array[];
}

interface Signer {
  readonly type: 'ed25519' | 'rsa' | 'ec' | 'dsa' | 'x25519';
  readonly algorithm: string;
  readonly digest: string | null;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}
const ecdsa = '1.2.840.10045.4.3.2';
const signers: readonly Signer[] = [
  { type: 'ed25519', algorithm: '1.3.101.112', digest: null, ...generateKeyPairSync('ed25519') },
  {
    type: 'rsa',
    algorithm: '1.2.840.113549.1.1.11',
    digest: 'sha256',
    ...generateKeyPairSync('rsa', { modulusLength: 1024 }),
  },
  { type: 'ec', algorithm: ecdsa, digest: 'sha256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) },
  {
    type: 'dsa',
    algorithm: ecdsa,
    digest: 'sha256',
    ...generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }),
  },
  { type: 'x25519', algorithm: '1.3.101.112', digest: null, ...generateKeyPairSync('x25519') },
];
const honest = signers.filter(({ type }) => ['ed25519', 'rsa', 'ec'].includes(type));
const spkiOf = (key: KeyObject): Uint8Array => key.export({ type: 'spki', format: 'der' });
const [commonName, organization] = ['2.5.4.3', '2.5.4.10'];

const honestParts = ({ algorithm, digest, publicKey, privateKey }: Signer): Parts => ({
  version: encode(tag.integer, Uint8Array.of(0)),
  subject: [
    [organization, tag.utf8String, 'liqo.io'],
    [commonName, tag.utf8String, 'rome'],
  ],
  key: spkiOf(publicKey),
  attributes: [encode(tag.context0)],
  algorithm,
  parameters: [],
  signature: (info) =>
    privateKey.asymmetricKeyType === 'x25519' ? info.subarray(0, 64) : sign(digest, info, privateKey),
  after: [],
});

function written({ version, subject, key, attributes, algorithm, parameters, signature, after }: Parts): string {
  const names = subject.map(([type, valueTag, value]) =>
    encode(tag.set, encode(tag.sequence, oid(type), encode(valueTag, Buffer.from(value)))),
  );
  const info = encode(tag.sequence, version, encode(tag.sequence, ...names), key, ...attributes);
  const bits = encode(tag.bitString, Uint8Array.of(0), signature(info));
  const whole = encode(tag.sequence, info, encode(tag.sequence, oid(algorithm), ...parameters), bits, ...after);
  return writePem('CERTIFICATE REQUEST', whole);
}

const algorithms = ['1.3.101.112', '1.2.840.113549.1.1.11', '1.2.840.113549.1.1.13', ecdsa, '1.2.3'];
const node = fc
  .tuple(fc.constantFrom<number>(...Object.values(tag)), bytes())
  .map(([t, content]) => encode(t, content));
const pair = fc.tuple(
  fc.constantFrom(commonName, organization, '2.5.4.6'),
  fc.constantFrom<number>(tag.utf8String, tag.printableString, tag.ia5String, tag.integer),
  fc.constantFrom('rome', 'liqo.io', 'system:masters', ''),
);
/** Replacements of single parts of a request, which is signed by its key after the replacement. */
const lies: fc.Arbitrary<Partial<Parts>> = fc.oneof(
  node.map((version) => ({ version })),
  fc.array(pair, { maxLength: 4 }).map((subject) => ({ subject })),
  fc.oneof(node, fc.constantFrom(...signers.map(({ publicKey }) => spkiOf(publicKey)))).map((key) => ({ key })),
  fc.array(node, { maxLength: 3 }).map((attributes) => ({ attributes })),
  fc.constantFrom(...algorithms).map((algorithm) => ({ algorithm })),
  fc.array(node, { maxLength: 2 }).map((parameters) => ({ parameters })),
  bytes(80).map((signature) => ({ signature: () => signature })),
  fc.array(node, { minLength: 1, maxLength: 2 }).map((after) => ({ after })),
);

const isIn = (value: Uint8Array, accepted: readonly Uint8Array[]): boolean =>
  accepted.some((one) => Buffer.from(one).equals(value));

/** PKCS#10 by the letter, of one CN and one O, signed by the key it holds with an algorithm of that key. */
function isAcceptable(parts: Parts, signer: Signer): boolean {
  const names = parts.subject.map(([type]) => type);
  const texts: readonly number[] = [tag.utf8String, tag.printableString, tag.ia5String];
  const accepted = { ed25519: ['1.3.101.112'], rsa: algorithms.slice(1, 3), ec: [ecdsa], dsa: [], x25519: [] };
  return (
    isIn(parts.version, [encode(tag.integer, Uint8Array.of(0))]) &&
    names.length === 2 &&
    names.includes(commonName) &&
    names.includes(organization) &&
    parts.subject.every(([, valueTag]) => texts.includes(valueTag)) &&
    isIn(parts.key, [spkiOf(signer.publicKey)]) &&
    parts.attributes.length <= 1 &&
    parts.attributes.every((one) => one[0] === tag.context0) &&
    (accepted[signer.type] as readonly string[]).includes(parts.algorithm) &&
    parts.after.length === 0
  );
}

test('a request is accepted only if it is PKCS#10 by the letter and signed by an algorithm of the key it holds', () => {
  const watch = slowest('certificate requests');
  fc.assert(
    fc.property(fc.constantFrom(...signers), fc.array(lies, { maxLength: 2 }), (signer, changes) => {
      const parts: Parts = Object.assign({}, honestParts(signer), ...changes);
      const pem = written(parts);
      const read = watch(() => refusalOr(() => readCertificateRequest(pem)));
      if (read !== undefined) expect(isAcceptable(parts, signer)).toBe(true);
      if (changes.length === 0) expect(read !== undefined).toBe(honest.includes(signer));
    }),
    { numRuns: runs },
  );
}, 900_000);

test('of a request with one byte changed what is read is what was signed', () => {
  const watch = slowest('damaged certificate requests');
  fc.assert(
    fc.property(fc.constantFrom(...honest), fc.nat(), fc.nat(255), (signer, at, value) => {
      const text = written(honestParts(signer));
      const der = Buffer.from(text.split('\n').slice(1, -2).join(''), 'base64');
      der[at % der.length] = value;
      const read = watch(() => refusalOr(() => readCertificateRequest(writePem('CERTIFICATE REQUEST', der))));
      if (read !== undefined)
        expect([read.commonName, read.organization, read.publicKey.equals(signer.publicKey)]).toEqual([
          'rome',
          'liqo.io',
          true,
        ]);
    }),
    { numRuns: runs },
  );
}, 900_000);

test('text that is no request is refused, also with lines of PEM in it', () => {
  const line = fc.oneof(
    fc.constantFrom('-----BEGIN CERTIFICATE REQUEST-----', '-----END CERTIFICATE REQUEST-----', '', '\r', '  '),
    fc.constantFrom('-----BEGIN ', '-----BEGIN CERTIFICATE-----', 'MAA=', '===='),
    fc.string({ maxLength: 80 }),
  );
  const watch = slowest('PEM');
  fc.assert(
    fc.property(fc.array(line, { maxLength: 30 }), (lines) => {
      const text = lines.join('\n');
      expect(watch(() => refusalOr(() => readCertificateRequest(text)))).toBeUndefined();
    }),
    { numRuns: runs },
  );
}, 900_000);
