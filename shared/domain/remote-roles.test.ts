/** The consumer's rights, read as rules. That an API server agrees is proven in test/system/peering/rights.real.test.ts. */
import { describe, expect, test } from 'vitest';
import { remoteRoles } from './remote-roles.ts';

const rules = remoteRoles().flatMap((role) => role.rules ?? []);
const writes = new Set(['create', 'update', 'patch', 'delete', 'deletecollection', '*']);

describe('the roles of a consumer', () => {
  test('name no wildcard', () => {
    for (const rule of rules) {
      for (const word of [...(rule.apiGroups ?? []), ...(rule.resources ?? []), ...rule.verbs])
        expect(word).not.toContain('*');
    }
  });

  test('grant neither writing a status nor creating a Pod', () => {
    for (const rule of rules) {
      const canWrite = rule.verbs.some((verb) => writes.has(verb));
      if (canWrite) expect(rule.resources).not.toContain('pods');
      expect(rule.resources?.filter((resource) => resource.endsWith('/status'))).toEqual([]);
    }
  });

  test('carry the labels by which they are found', () => {
    expect(remoteRoles().map((role) => [role.metadata.name, role.metadata.labels?.['app.kubernetes.io/name']])).toEqual(
      [
        ['liqo-remote-controlplane', 'remote-controlplane'],
        ['liqo-virtual-kubelet-remote', 'virtual-kubelet-remote'],
        ['liqo-virtual-kubelet-remote-clusterwide', 'virtual-kubelet-remote-clusterwide'],
      ],
    );
  });

  test('grant nothing in the whole cluster', () => {
    expect(remoteRoles().at(-1)?.rules).toEqual([]);
  });
});
