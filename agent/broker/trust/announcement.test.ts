/** What an announcement is and is not, and what of it a receiver believes. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import fc from 'fast-check';
import { SignJWT } from 'jose';
import { describe, expect, test } from 'vitest';
import { generateClusterKeys, signSuccession } from '#agent/pki/cluster-keys.ts';
import { signProxyToken } from '#agent/pki/proxy-token.ts';
import { lockText } from '#shared/domain/peering-lock.ts';
import type { TrustMode } from '#shared/schema/isthmus/peering-policy.ts';
import type { TrustedPeer, TrustedPeerStatus } from '#shared/schema/isthmus/trusted-peer.ts';
import { type Claims, readAnnouncement, signAnnouncement } from './announcement.ts';
import { decideTrust, type TrustInput } from './decide.ts';

const pairOf = (keys = generateClusterKeys()) => ({ keys, privateKey: createPrivateKey(keys.privateKey) });
const derOf = (key: KeyObject): string =>
  createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
const milan = pairOf();
const thief = pairOf();
const claims = (more: Partial<Claims> = {}): Claims => ({
  purpose: 'peering',
  sender: 'milan',
  receiver: 'rome',
  tenant: 'acme',
  at: 1_000,
  key: derOf(milan.privateKey),
  apiServer: 'https://192.0.2.1:6443',
  caHash: 'a'.repeat(64),
  ...more,
});
const announced = (more: Partial<Claims> = {}, by = milan.privateKey): string => signAnnouncement(claims(more), by);

describe('an announcement', () => {
  test('is read as it was signed', () => {
    expect(readAnnouncement(announced())?.claims).toEqual(claims());
  });

  test('with any character changed, cut or added is none', () => {
    const text = announced();
    fc.assert(
      fc.property(fc.nat(text.length - 1), fc.constantFrom(...'AZaz09-_.='), (at, letter) => {
        fc.pre(text[at] !== letter);
        const changed = `${text.slice(0, at)}${letter}${text.slice(at + 1)}`;
        // The last letter of a part has bits that decode to nothing.
        const read = readAnnouncement(changed);
        expect(read === undefined || JSON.stringify(read.claims) === JSON.stringify(claims())).toBe(true);
        expect(readAnnouncement(text.slice(0, at))).toBeUndefined();
      }),
    );
  });

  test('is none by another key than the one it names', () => {
    expect(readAnnouncement(announced({}, thief.privateKey))).toBeUndefined();
  });

  test('is neither a request to a broker, nor a token of a proxy, nor the bare signature over a text', async () => {
    const header = { alg: 'EdDSA', typ: 'JWT' };
    const request = await new SignJWT({ ...claims() }).setProtectedHeader(header).sign(milan.privateKey);
    expect(readAnnouncement(request)).toBeUndefined();
    const token = await signProxyToken({ iss: 'milan', aud: 'rome', iat: 1, jti: 'j', nonce: 'n' }, milan.privateKey);
    expect(readAnnouncement(token)).toBeUndefined();
    const [head, body] = announced().split('.');
    const bare = sign(null, Buffer.from(body ?? ''), milan.privateKey).toString('base64url');
    expect(readAnnouncement(`${head}.${body}.${bare}`)).toBeUndefined();
  });
});

const input = (more: Partial<TrustInput> & { readonly text?: string }): TrustInput => ({
  set: { peer: 'milan', role: 'consumer', announcement: more.text ?? announced() },
  self: { clusterId: 'rome', tenant: 'acme' },
  known: undefined,
  locks: [],
  modes: ['FirstUse'],
  accepts: true,
  ...more,
});
const known = (status: TrustedPeerStatus, spec: TrustedPeer['spec'] = {}): TrustedPeer => ({
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'TrustedPeer',
  metadata: { name: 'milan' },
  spec,
  status,
});
const fingerprint = readAnnouncement(announced())?.fingerprint ?? '';
const pinned = known({
  key: derOf(milan.privateKey),
  fingerprint,
  tenant: 'acme',
  trustedBy: 'Lock',
  announcedAt: 1_000,
});
const codeOf = (given: TrustInput) => decideTrust(given).refused?.code;

describe('the first key of a peer', () => {
  const admin = pairOf();
  const lockOf = (tenant: string, ...keys: KeyObject[]) => ({
    apiVersion: 'isthmus.dev/v1alpha1' as const,
    kind: 'PeeringLock' as const,
    metadata: { name: tenant },
    spec: { keys: keys.map((key) => ({ key: derOf(key) })) },
  });
  const signedLock = (by: KeyObject, of: Partial<Parameters<typeof lockText>[0]> = {}) => ({
    key: derOf(by),
    at: 5,
    signature: sign(
      null,
      Buffer.from(lockText({ tenant: 'acme', clusterId: 'milan', fingerprint, at: 5, ...of })),
      by,
    ).toString('base64'),
  });

  test.each<[string, readonly TrustMode[], string | undefined]>([
    ['nothing but a lock or an object', ['Lock', 'Object'], 'peer_key_refused'],
    ['the first use', ['FirstUse'], undefined],
  ])('is taken as the policy says: %s', (_, modes, code) => {
    expect(codeOf(input({ modes }))).toBe(code);
  });

  test('is trusted when a known lock key of that account signed it for that cluster, and not otherwise', () => {
    const locks = [lockOf('acme', admin.privateKey)];
    const by = (lock: ReturnType<typeof signedLock>, more: Partial<TrustInput> = {}) =>
      decideTrust(input({ modes: ['Lock'], locks, text: announced({ locks: [lock] }), ...more }));
    expect(by(signedLock(admin.privateKey))).toMatchObject({ remember: { trustedBy: 'Lock', fingerprint } });
    expect(by(signedLock(thief.privateKey)).refused?.code).toBe('peer_key_refused');
    expect(by({ ...signedLock(thief.privateKey), key: derOf(admin.privateKey) }).refused?.code).toBe(
      'peer_key_refused',
    );
    for (const of of [{ tenant: 'globex' }, { clusterId: 'turin' }, { fingerprint: 'sha256:0' }, { at: 6 }])
      expect(by(signedLock(admin.privateKey, of)).refused?.code).toBe('peer_key_refused');
    expect(by(signedLock(admin.privateKey), { locks: [lockOf('globex', admin.privateKey)] }).refused?.code).toBe(
      'peer_key_refused',
    );
    expect(by(signedLock(admin.privateKey), { modes: ['Object'] }).refused?.code).toBe('peer_key_refused');
  });

  test('is refused with the reason and the command where administrators of two machines have joined the clusters', () => {
    const said = (locks: TrustInput['locks'], text: string) =>
      decideTrust(input({ modes: ['Lock'], locks, text })).refused?.message;
    const text = announced({ locks: [signedLock(thief.privateKey)] });
    const command = 'isthmus lock trust KEY --tenant acme --kubeconfig FILE';
    expect(said([lockOf('acme', admin.privateKey)], text)).toContain('another lock key than those that');
    expect(said([lockOf('acme', admin.privateKey)], text)).toContain(command);
    expect(said([], text)).toContain('it trusts none for account acme');
    expect(said([], announced())).toContain('no lock key signed it');
    expect(said([], announced())).not.toContain('isthmus lock trust');
  });

  test('is replaced by one that the lock signed later, and never by one that it signed before', () => {
    const locks = [lockOf('acme', admin.privateKey)];
    const text = announced({ locks: [signedLock(admin.privateKey)] });
    const other = { key: derOf(thief.privateKey), fingerprint: `sha256:${'0'.repeat(64)}`, tenant: 'acme' };
    const by = (lockedAt: number) => known({ ...other, trustedBy: 'Lock', lockedAt });
    const modes: TrustMode[] = ['Lock'];
    expect(codeOf(input({ modes, known: by(4), locks, text }))).toBeUndefined();
    expect(codeOf(input({ modes, known: by(5), locks, text }))).toBe('peer_key_refused');
    expect(codeOf(input({ modes, known: known({ ...other, trustedBy: 'Object' }), locks, text }))).toBe(
      'peer_key_refused',
    );
    expect(codeOf(input({ modes: ['Object'], known: by(4), locks, text })), 'policies ask for no lock any more').toBe(
      'peer_key_refused',
    );
  });

  test('is the one that an administrator named, in every mode', () => {
    expect(decideTrust(input({ known: known({}, { fingerprint }), modes: ['Object'] })).remember.trustedBy).toBe(
      'Object',
    );
    const other = `sha256:${'0'.repeat(64)}`;
    for (const modes of [['Object'], ['FirstUse'], ['Broker']] as TrustMode[][])
      expect(codeOf(input({ known: known({}, { fingerprint: other }), modes }))).toBe('peer_key_refused');
  });
});

describe('a peer whose key is known', () => {
  test('is refused with any other key, also where the first use would do', () => {
    const text = announced({ key: derOf(thief.privateKey) }, thief.privateKey);
    for (const modes of [['FirstUse'], ['Broker'], ['Lock']] as TrustMode[][])
      expect(decideTrust(input({ known: pinned, text, modes })).refused).toEqual({
        code: 'peer_key_refused',
        message: expect.stringContaining(`known by key ${fingerprint}`),
      });
  });

  test('may come with a key that the known one signed', () => {
    const succession = Buffer.from(signSuccession(milan.keys, thief.keys)).toString('base64');
    const next = { key: derOf(thief.privateKey), succession };
    expect(codeOf(input({ known: pinned, text: announced(next, thief.privateKey) }))).toBeUndefined();
    const own = Buffer.from(signSuccession(thief.keys, thief.keys)).toString('base64');
    expect(codeOf(input({ known: pinned, text: announced({ ...next, succession: own }, thief.privateKey) }))).toBe(
      'peer_key_refused',
    );
  });

  test('is not believed again what it said before something newer', () => {
    expect(codeOf(input({ known: pinned, text: announced({ at: 999 }) }))).toBe('peer_unproven');
    expect(codeOf(input({ known: pinned, text: announced({ at: 1_001 }) }))).toBeUndefined();
  });

  test('needs an announcement even where the broker is believed', () => {
    const set = { peer: 'milan', role: 'consumer' as const };
    expect(codeOf({ ...input({}), set, known: pinned, modes: ['Broker'] })).toBe('peer_unproven');
    expect(codeOf({ ...input({}), set, modes: ['Broker'] })).toBeUndefined();
  });

  test('is refused as a cluster of another account', () => {
    const set = {
      peer: 'milan',
      role: 'consumer' as const,
      peerTenant: 'globex',
      announcement: announced({ tenant: 'globex' }),
    };
    expect(codeOf({ ...input({}), set, known: pinned })).toBe('peer_key_refused');
  });
});

describe('an announcement that is genuine, and not for this', () => {
  test.each<[string, Partial<Claims>, string | undefined]>([
    ['for another cluster', { receiver: 'turin' }, undefined],
    ['of another cluster', { sender: 'turin' }, undefined],
    ['of another account, which the broker leaves out', { tenant: 'globex' }, undefined],
    ['of this account, which the broker presents as another', {}, 'globex'],
  ])('is refused: %s', (_, more, peerTenant) => {
    const given = input({ text: announced(more) });
    expect(codeOf({ ...given, set: { ...given.set, ...(peerTenant && { peerTenant }) } })).toBe('announcement_refused');
  });
});

test('what this cluster announces to a cluster of its own name is no announcement of a peer', () => {
  const set = { peer: 'rome', role: 'consumer' as const, announcement: announced({ sender: 'rome' }) };
  expect(codeOf({ ...input({}), set })).toBe('announcement_refused');
});

describe('a policy that accepts nothing by itself', () => {
  test('leaves the peering waiting for an administrator, and names the command', () => {
    const decision = decideTrust(input({ accepts: false }));
    expect(decision.refused).toEqual({
      code: 'consent_missing',
      message: expect.stringContaining('kubectl patch trustedpeer milan'),
    });
    expect(decision.remember.agreed).toBeUndefined();
  });

  test('is satisfied by consent to this very role', () => {
    expect(codeOf(input({ accepts: false, known: known({}, { consent: ['provider'] }) }))).toBe('consent_missing');
    const given = input({ accepts: false, known: known({}, { consent: ['consumer'] }) });
    expect(decideTrust(given)).toMatchObject({ remember: { agreed: ['consumer'] } });
  });

  test('does not take back what was agreed to', () => {
    expect(codeOf(input({ accepts: false, known: known({ ...pinned.status, agreed: ['consumer'] }) }))).toBeUndefined();
  });

  test('holds where the broker is believed, too', () => {
    expect(codeOf(input({ accepts: false, modes: ['Broker'] }))).toBe('consent_missing');
  });
});
