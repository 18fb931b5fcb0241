/** What a consumer adds to a slice before it travels. */
import { expect, test } from 'vitest';
import { readCertificateRequest } from '#agent/pki/certificate-request.ts';
import { generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { ResourceSlice } from '#shared/schema/liqo/resource-slice.ts';
import { completedSpec, missingLabels } from './consumer-slice-controller.ts';

const keys = generateClusterKeys();
const slice = (spec: ResourceSlice['spec'], peer?: string): ResourceSlice => ({
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'ResourceSlice',
  metadata: { name: 'milan', namespace: 'ns', labels: peer === undefined ? {} : { [label.remoteClusterId]: peer } },
  spec,
});

test('both cluster IDs and a request for the user of the slice', () => {
  const spec = completedSpec(slice({}, 'milan'), 'rome', undefined, keys.privateKey);
  expect(spec).toMatchObject({ consumerClusterID: 'rome', providerClusterID: 'milan' });
  expect(readCertificateRequest(fromBase64(spec?.csr ?? ''))).toMatchObject({
    commonName: expect.stringMatching(/^milan-[0-9a-f]{12}$/),
    organization: 'rome',
  });
});

test('the provider from the namespace when the slice does not say', () =>
  expect(completedSpec(slice({}), 'rome', 'milan', keys.privateKey)).toMatchObject({ providerClusterID: 'milan' }));

test('nothing to a complete slice; a new request after the key changed', () => {
  const complete = slice({ ...completedSpec(slice({}, 'milan'), 'rome', undefined, keys.privateKey) }, 'milan');
  expect(completedSpec(complete, 'rome', undefined, keys.privateKey)).toBeUndefined();
  expect(Object.keys(completedSpec(complete, 'rome', undefined, generateClusterKeys().privateKey) ?? {})).toEqual([
    'csr',
  ]);
});

const labelled = (labels: Record<string, string>): ResourceSlice => ({
  ...slice({}),
  metadata: { name: 'milan', namespace: 'ns', labels },
});
const all = { [label.replication]: 'true', [label.remoteId]: 'milan', [label.remoteClusterId]: 'milan' };

test.each([
  ['all three labels, when it has none', {}, 'milan', all],
  [
    "the one that Liqo's guide to declared peerings leaves out",
    { [label.remoteId]: 'milan', [label.remoteClusterId]: 'milan' },
    'milan',
    { [label.replication]: 'true' },
  ],
  ['nothing outside of tenant namespaces', {}, undefined, undefined],
  ['nothing when it has them', all, 'milan', undefined],
  ['nothing when it is for another cluster', { [label.remoteId]: 'turin' }, 'milan', undefined],
  ['nothing when it is to stay at home', { [label.replication]: 'false' }, 'milan', undefined],
  ['nothing when it is a copy', { [label.replicated]: 'true', [label.originId]: 'milan' }, 'milan', undefined],
  ['nothing when it is half a copy', { [label.originId]: 'milan' }, 'milan', undefined],
] as const)('%s', (_, labels, peer, added) => {
  expect(missingLabels(labelled(labels), peer)).toEqual(added);
});
