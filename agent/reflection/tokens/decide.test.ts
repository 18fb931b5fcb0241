import { expect, test } from 'vitest';
import type { Pod, Secret } from '#shared/domain/kube-object.ts';
import { withDigests } from '../model/digests.ts';
import { type Action, decide, tokenSecret } from './decide.ts';

const home = { port: 443, addresses: [] };
const nowMs = Date.UTC(2026, 0, 1);
const after = (ms: number): string => new Date(nowMs + ms).toISOString();
const source = (path: string, expirationSeconds?: number) => ({
  serviceAccountToken: { path, ...(expirationSeconds ? { expirationSeconds } : {}) },
});
const pod = (change: { metadata?: object; status?: object; sources?: object[] } = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'demo', uid: 'l1', ...change.metadata },
    spec: {
      containers: [],
      serviceAccountName: 'sa',
      volumes: [{ name: 'v', projected: { sources: change.sources ?? [source('t')] } }],
    },
    status: { phase: 'Running', ...change.status },
  }) as Pod;
const context = { consumer: 'cons', provider: 'prov', nodeName: 'vn1' };
const key = 'v-e3b98a';
const secret = (of: Pod, expires: string, keys: readonly string[] = [key]): Secret => {
  const issued = keys.map((one) => ({ key: one, token: 'dG9r', expires }));
  const made = tokenSecret(of, 'demo-cons', issued, context);
  return withDigests({ ...made, metadata: { ...made.metadata, uid: 's1' } }, ['data']);
};
const tampered = (of: Secret): Secret => withDigests({ ...of, data: { [key]: 'b3RoZXI=' } }, ['data']);
const support = (value: string) => ({ metadata: { annotations: { 'liqo.io/api-server-support': value } } });

interface Row {
  readonly when: string;
  readonly pod?: Pod;
  readonly secret?: Secret;
  readonly off?: boolean;
  readonly does: Action['do'];
}
test.each<Row>([
  { when: 'nothing is there', does: 'nothing' },
  { when: 'B027: the pod asks for a token', pod: pod(), does: 'issue' },
  { when: 'the pod asks for none', pod: pod({ sources: [{ configMap: { name: 'c' } }] }), does: 'nothing' },
  { when: 'B088: the pod wants no API', pod: pod(support('disabled')), does: 'nothing' },
  { when: "B088: the pod wants the provider's API", pod: pod(support('remote')), does: 'nothing' },
  { when: 'it is switched off', pod: pod(), off: true, does: 'nothing' },
  { when: 'it was switched off', pod: pod(), off: true, secret: secret(pod(), after(3_600_000)), does: 'delete' },
  { when: 'the pod is gone', secret: secret(pod(), after(3_600_000)), does: 'delete' },
  {
    when: 'the pod has ended',
    pod: pod({ status: { phase: 'Failed' } }),
    secret: secret(pod(), after(3_600_000)),
    does: 'delete',
  },
  {
    when: 'the pod still ends',
    pod: pod({ metadata: { uid: 'l1', deletionTimestamp: after(0) } }),
    secret: secret(pod(), after(3_600_000)),
    does: 'wait',
  },
  {
    when: 'the tokens are of an earlier pod',
    pod: pod({ metadata: { uid: 'l2' } }),
    secret: secret(pod(), after(3_600_000)),
    does: 'delete',
  },
  {
    when: 'the tokens were changed by hand',
    pod: pod(),
    secret: tampered(secret(pod(), after(3_600_000))),
    does: 'issue',
  },
  {
    when: 'a token is missing',
    pod: pod({ sources: [source('t'), source('u')] }),
    secret: secret(pod(), after(3_600_000)),
    does: 'issue',
  },
  { when: 'the expiry is unreadable', pod: pod(), secret: secret(pod(), 'soon'), does: 'issue' },
  {
    when: 'B089: 79 % of an hour have passed',
    pod: pod(),
    secret: secret(pod(), after(0.21 * 3_600_000)),
    does: 'wait',
  },
  {
    when: 'B089: 81 % of an hour have passed',
    pod: pod(),
    secret: secret(pod(), after(0.19 * 3_600_000)),
    does: 'issue',
  },
])('when $when: $does', (row) => {
  expect(decide({ pod: row.pod, secret: row.secret, home: row.off ? undefined : home, nowMs }).do).toBe(row.does);
});

test('of several tokens the shortest says when all are renewed', () => {
  const of = pod({ sources: [source('t', 600), source('u', 6000)] });
  const both = decide({ pod: of, home, nowMs });
  const keys = both.do === 'issue' ? both.wishes.map((desired) => desired.key) : [];
  expect(decide({ pod: of, secret: secret(of, after(600_000), keys), home, nowMs })).toEqual({
    do: 'wait',
    afterMs: 480_000,
  });
});
