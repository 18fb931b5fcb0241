/** What a consumer may do to objects in its tenant namespace at the provider. */
import { describe, expect, test } from 'vitest';
import type { Review } from '#agent/admission/review.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { validateCount, validateReplica, validateTenant } from './authentication-kinds.ts';

const copy = (labels: Record<string, string> = {}, annotations: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'ResourceSlice',
  metadata: {
    name: 'milan',
    namespace: 'liqo-tenant-rome',
    labels: {
      'liqo.io/replicated': 'true',
      'liqo.io/replication': 'false',
      'liqo.io/originID': 'rome',
      'liqo.io/remote-cluster-id': 'rome',
      ...labels,
    },
    annotations,
  },
});
/** The provider's own slice, towards the same peer: two opposite peerings share the namespace. */
const own = copy({ 'liqo.io/replicated': '', 'liqo.io/replication': 'true', 'liqo.io/originID': '' });

const by = (operation: Review['operation'], object: KubeObject | undefined, before?: KubeObject, more: object = {}) =>
  validateReplica({
    operation,
    user: { name: 'rome', groups: ['liqo.io'] },
    object,
    before,
    ...more,
  } as unknown as Review);
const held = (...finalizers: string[]): KubeObject => ({ ...copy(), metadata: { ...copy().metadata, finalizers } });

describe('a consumer', () => {
  test.each([
    { what: 'create a copy of its own object', verdict: by('CREATE', copy()) },
    { what: 'update its copy', verdict: by('UPDATE', copy(), copy()) },
    { what: 'delete its copy', verdict: by('DELETE', undefined, copy()) },
    { what: 'update a copy that the provider holds', verdict: by('UPDATE', held('of/provider'), held('of/provider')) },
  ])('may $what', ({ verdict }) => {
    expect(verdict.allowed).toBe(true);
  });

  test.each([
    { what: 'create an object that is no copy', verdict: by('CREATE', own) },
    {
      what: 'create a copy in the name of another consumer',
      verdict: by('CREATE', copy({ 'liqo.io/originID': 'naples' })),
    },
    { what: 'update an object of the provider', verdict: by('UPDATE', own, own) },
    { what: 'make an object of the provider its own', verdict: by('UPDATE', copy(), own) },
    { what: 'delete an object of the provider', verdict: by('DELETE', undefined, own) },
    { what: 'hold its tenant namespace from its first write on', verdict: by('CREATE', held('example.com/stay')) },
    { what: 'hold its tenant namespace later', verdict: by('UPDATE', held('example.com/stay'), copy()) },
    { what: 'take off what the provider cleans up by', verdict: by('UPDATE', copy(), held('of/provider')) },
    { what: 'leave its Quota behind by a finalizer', verdict: by('CREATE', held('orphan')) },
    {
      what: 'leave its Quota behind by an option',
      verdict: by('DELETE', undefined, copy(), { isOrphaning: true }),
    },
    { what: 'uncordon itself', verdict: by('UPDATE', copy(), copy({}, { 'liqo.io/cordon': 'true' })) },
  ])('may not $what', ({ verdict }) => {
    expect(verdict).toMatchObject({ allowed: false });
  });
});

test('a consumer has a hundred copies of a kind, and no more', () => {
  expect(validateCount(copy(), 99).allowed).toBe(true);
  expect(validateCount(copy(), 100)).toMatchObject({
    allowed: false,
    code: 'quota_exceeded',
    message: 'there are 100 objects of kind ResourceSlice here: accepted of one consumer are 100',
  });
});

describe.each(['isthmus.dev/in-band-without-token', 'isthmus.dev/front-door'])('a Tenant with %s', (annotation) => {
  const tenant = (value?: string): Tenant =>
    ({
      metadata: {
        name: 'rome',
        labels: { 'liqo.io/remote-cluster-id': 'rome' },
        ...(value !== undefined && { annotations: { [annotation]: value } }),
      },
      spec: { clusterID: 'rome' },
    }) as unknown as Tenant;
  const context = (isAdministrator: boolean) => ({
    namespace: 'liqo-tenant-rome',
    namespaceLabels: { 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': 'rome' },
    others: [],
    isAdministrator,
  });

  test.each([
    { after: 'true', before: tenant(), admin: true, says: undefined },
    { after: 'true', before: undefined, admin: true, says: undefined },
    {
      after: 'true',
      before: tenant(),
      admin: false,
      says: 'may update tenants.authentication.liqo.io in all namespaces',
    },
    { after: 'true', before: undefined, admin: false, says: 'may update tenants.authentication.liqo.io' },
    { after: 'true', before: tenant('false'), admin: false, says: 'may update tenants.authentication.liqo.io' },
    // What an administrator has decided stays when another user changes something else.
    { after: 'true', before: tenant('true'), admin: false, says: undefined },
    { after: 'false', before: tenant('true'), admin: false, says: undefined },
    { after: undefined, before: tenant('true'), admin: false, says: undefined },
    { after: 'yes', before: tenant(), admin: true, says: 'is "yes": accepted is "true" or "false"' },
    { after: '', before: tenant(), admin: true, says: 'is "": accepted is "true" or "false"' },
  ])('$after, by an administrator: $admin, is answered with $says', ({ after, before, admin, says }) => {
    const verdict = validateTenant(tenant(after), before, context(admin));
    expect(verdict.allowed).toBe(says === undefined);
    if (!verdict.allowed) expect(verdict.message).toContain(says);
  });
});
