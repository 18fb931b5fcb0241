import { gunzipSync, gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTar } from '#shared/archive/tar.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { archiveOf } from './archive.ts';
import { found } from './collect.ts';
import { redactJson, redactObject, redactText } from './redact.ts';

const word = (alphabet: string, length: number) =>
  fc.array(fc.constantFrom(...alphabet), { minLength: length, maxLength: length + 24 }).map((all) => all.join(''));
const base64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const url = `${base64.slice(0, 62)}-_`;
const lower = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** As they look in clusters and at brokers; `core` is what must not be found. */
const secret: fc.Arbitrary<{ readonly text: string; readonly core: string }> = fc.oneof(
  word(url, 40).map((core) => ({ core, text: `eyJhbGciOiJSUzI1NiJ9.eyJ${core}.${core}` })),
  word(base64, 64).map((core) => ({
    core,
    text: `-----BEGIN RSA PRIVATE KEY-----\n${core}\n-----END RSA PRIVATE KEY-----`,
  })),
  word(base64, 64).map((core) => ({ core, text: `-----BEGIN CERTIFICATE-----\n${core}` })),
  word(url, 43).map((core) => ({ core, text: `isk_default_${core}` })),
  word(url, 43).map((core) => ({ core, text: `iso_abc_${core}` })),
  word(lower, 20).map((core) => ({ core, text: `Authorization: Bearer ${core}` })),
  word(lower, 8).map((core) => ({ core, text: `password=${core}` })),
  word(lower, 8).map((core) => ({ core, text: `"token": "${core}"` })),
  word(lower, 8).map((core) => ({ core, text: `https://user:${core}@host/path` })),
  word(base64, 60).map((core) => ({ core, text: `client-key-data: 0a${core}==` })),
  word(base64, 42).map((core) => ({ core, text: `WireGuard 1aZ${core}=` })),
);

/** Fields in which people and controllers put anything, and those of objects of ours that hold credentials. */
const anywhere = (text: string): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      namespace: 'shop',
      labels: { app: text },
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': text },
      managedFields: [{ manager: text }],
    },
    spec: {
      containers: [{ name: 'main', image: text, args: [text], command: [text], env: [{ name: 'X', value: text }] }],
      csr: text,
      authParams: { signedCRT: text, ca: text },
      deep: [[{ note: text }], { [text]: 'as a key' }],
    },
    data: { config: text },
    stringData: { plain: text },
    status: { message: `it failed: ${text}`, conditions: [{ type: 'Ready', message: text }], token: text },
  }) as unknown as KubeObject;

const contentOf = (archive: Buffer): string => [...readTar(gunzipSync(archive)).values()].map(String).join('\n');

describe('a support bundle', () => {
  test('has none of the secrets that stand in any field, event, log line or finding', () => {
    fc.assert(
      fc.property(secret, fc.string(), ({ text, core }, noise) => {
        const { tar } = archiveOf([
          { name: 'a/objects/pods.json', text: JSON.stringify([anywhere(text)].map(redactObject)) },
          {
            name: 'a/logs/x.log',
            text: redactText(`2026-11-23T00:00:00Z ${noise} {"msg":"${noise} ${text}"}\n${text}\n`),
          },
          found('doctor.json', { cause: { text, evidence: [text] }, deep: { [text]: [text] } }),
        ]);
        expect(contentOf(gzipSync(tar))).not.toContain(core);
      }),
      { numRuns: 500 },
    );
  });

  test('has nothing of what people write freely, of any form, and of a Secret its name alone', () => {
    const plain = 'swordfish';
    const pod = {
      ...anywhere('x'),
      metadata: { name: 'web', annotations: { note: plain } },
      data: { note: plain },
    } as unknown as KubeObject;
    const spec = {
      containers: [{ name: 'main', image: 'i', env: [{ name: 'P', value: plain }], args: [plain], command: [plain] }],
    };
    expect(JSON.stringify(redactObject({ ...pod, spec } as unknown as KubeObject))).not.toContain(plain);
    const kept = redactObject({
      kind: 'Secret',
      metadata: { name: 's', namespace: 'n', labels: { a: plain } },
      data: { a: plain },
    } as unknown as KubeObject);
    expect(kept).toEqual({ kind: 'Secret', metadata: { name: 's', namespace: 'n' } });
  });

  test('keeps what helps: names, versions, addresses, conditions, times', () => {
    const useful = {
      name: 'isthmus-agent-5ff5477d5c-t2b8b',
      image: 'registry.example/isthmus/agent:0.1.0',
      endpoint: '198.18.17.11:31000',
      secretRef: { name: 'gw-milan', namespace: 'liqo-tenant-milan' },
      conditions: [
        { type: 'Ready', status: 'False', reason: 'NoHandshake', message: 'no packet of the peer has come for 60 s' },
      ],
      uid: '2cdceaca-0c42-4698-9b26-d69d3f2ddca6',
      at: '2026-11-23T01:14:43Z',
    };
    expect(redactJson(useful)).toEqual(useful);
  });

  test('is bounded: what has no room is left out and said', () => {
    const big = 'x'.repeat(30_000_000);
    const { tar, cut } = archiveOf([
      { name: 'a', text: big },
      { name: 'b', text: big },
      { name: 'c', text: 'small' },
    ]);
    expect([...readTar(tar).keys()]).toEqual(['a', 'c']);
    expect(cut).toEqual([expect.stringContaining('b: ')]);
  });
});
