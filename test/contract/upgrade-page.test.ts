/** What the page about updates has its readers type lets in again what a provider refuses without it. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { identityRefusals } from '#agent/offloading/provider/admission/pod-identity.ts';
import { guestRules } from '#agent/offloading/provider/guests/decide.ts';
import { isolationOf } from '#agent/offloading/provider/namespaces/isolation.ts';
import { guestNameProblem } from '#agent/offloading/provider/namespaces/names.ts';
import { apiAccessOf } from '#agent/reflection/model/api-access.ts';
import { defaultPolicy, objectsOfAgent } from '#cli/install/manifests.ts';
import { mergePatched } from '#kube/http/testing/merge-patched.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { annotation } from '#shared/domain/liqo-keys.ts';
import { type PeeringPolicy, PeeringPolicySpec } from '#shared/schema/isthmus/peering-policy.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';

const page = readFileSync(path.resolve(import.meta.dirname, '../../docs/upgrade.md'), 'utf8');
const options = { clusterId: 'milan', image: 'i', apiServerUrl: 'https://192.0.2.1:6443', replicas: 1 };
const policy = objectsOfAgent(options).find(({ kind }) => kind === 'PeeringPolicy') as PeeringPolicy;

const commands = [...page.matchAll(/patch peeringpolicy (\S+) --type merge --patch '([^']+)'/g)];
const patchOf = (field: string): unknown =>
  commands.map(([, , text = '']) => JSON.parse(text)).find((patch) => patch.spec.asProvider.guests[field]);
const before = guestRules([policy], 'rome');
/** The API server refuses or drops what the schema does not have. */
function after(patch: unknown) {
  const spec = PeeringPolicySpec.parse(mergePatched(policy.spec, (patch as { spec: unknown }).spec));
  return guestRules([{ ...policy, spec }], 'rome');
}

test('each command patches the policy that an installation makes, and changes only what it names', () => {
  expect(commands.map(([, name]) => name)).toEqual([defaultPolicy, defaultPolicy, defaultPolicy]);
  expect(after(patchOf('networkPeers'))).toEqual({ ...before, networkPeers: ['turin'] });
  expect(after(patchOf('serviceAccounts'))).toEqual({ ...before, serviceAccounts: ['reader'] });
  expect(after(patchOf('namespaces'))).toEqual({ ...before, namespaces: ['demo'] });
});

test('with the first, guests reach the third cluster that it names, and without it they do not', () => {
  const turin = {
    metadata: { labels: { 'liqo.io/remote-cluster-id': 'turin' } },
    status: { remote: { cidr: { pod: ['10.30.0.0/16'], external: [] } } },
  } as unknown as Configuration;
  const openTo = (rules: typeof before) =>
    isolationOf({ consumer: 'rome', rules, configurations: [turin], networks: [], nodes: [] }).egress[0]?.to;
  const range = { ipBlock: { cidr: '10.30.0.0/16' } };
  expect(openTo(before)).not.toContainEqual(range);
  expect(openTo(after(patchOf('networkPeers')))).toContainEqual(range);
});

test('with the second, a pod may run as the account that it names, and without it not', () => {
  const refused = (rules: typeof before, serviceAccountName: string) =>
    [...identityRefusals({ containers: [], serviceAccountName } as never, rules)].map(([field]) => field);
  expect(refused(before, 'reader')).toEqual(['serviceAccountName']);
  expect(refused(after(patchOf('serviceAccounts')), 'reader')).toEqual([]);
  expect(refused(before, 'default')).toEqual([]);
});

test('with the third, a consumer gets the namespace that it names, and without it not', () => {
  expect(guestNameProblem('demo', 'rome', before.namespaces)).toMatch(/is not accepted/);
  expect(guestNameProblem('demo', 'rome', after(patchOf('namespaces')).namespaces)).toBeUndefined();
});

test('the annotations that it speaks of are those that the agent reads', () => {
  const [support, account] = [annotation.apiServerSupport, annotation.remoteServiceAccountName];
  const pod = { metadata: { name: 'web', annotations: { [support]: 'remote' } } } as unknown as Pod;
  expect(apiAccessOf(pod, undefined)).toBe('remote');
  for (const text of [`\`${support}: remote\``, `\`${account}\``, '`liqo.io/use-direct-connections: "true"`'])
    expect(page).toContain(text);
});
