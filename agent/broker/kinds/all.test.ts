/** The border between broker and cluster as a whole: which kinds cross it, and that nothing undeclared does. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { desiredSet, manifests, refusal } from '#agent/broker/testing/manifests.ts';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import type { KubeManifest, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { brokerKind, brokerKinds } from './all.ts';

/** What a broker may apply, and to which side; a kind without a side is only observed. A change here widens or narrows what a broker may do. */
const border: Readonly<Record<string, readonly PeeringRole[]>> = {
  Namespace: ['consumer', 'provider'],
  Secret: ['consumer', 'provider'],
  Tenant: ['provider'],
  Identity: ['consumer'],
  ResourceSlice: ['consumer'],
  NamespaceMap: [],
  VirtualNode: [],
  Node: [],
  Configuration: ['consumer', 'provider'],
  GatewayServer: ['consumer', 'provider'],
  GatewayClient: ['consumer', 'provider'],
  PublicKey: ['consumer', 'provider'],
  Connection: [],
};

const roles: readonly PeeringRole[] = ['consumer', 'provider'];
const accepted = Object.entries(border).flatMap(([kind, sides]) => sides.map((role) => ({ kind, role })));
const refusedKinds = Object.entries(border).flatMap(([kind, sides]) =>
  roles.filter((role) => !sides.includes(role)).map((role) => ({ kind, role })),
);
const sample = (kind: string, role: PeeringRole): KubeManifest => manifests[kind as keyof typeof manifests](role);

test('these kinds cross the border between broker and cluster, and no other', () => {
  expect(Object.fromEntries(brokerKinds.map(({ type, accepted: rule }) => [type.kind, rule?.roles ?? []]))).toEqual(
    border,
  );
  for (const kind of brokerKinds) expect(brokerKind(kind.type.kind)).toBe(kind);
  for (const kind of ['Pod', 'toString', 'constructor', '__proto__']) expect(brokerKind(kind)).toBeUndefined();
});

describe('of what a broker sends', () => {
  test.each(accepted)('a $kind for a $role is accepted', ({ kind, role }) => {
    expect(refusal(sample(kind, role), role)).toBeUndefined();
  });

  test.each(refusedKinds)('a $kind for a $role is refused with any content', ({ kind, role }) => {
    const type = brokerKind(kind)?.type ?? expect.fail(kind);
    const metadata = fc.record({
      name: fc.oneof(fc.constantFrom('milan', 'gw-milan', 'liqo-tenant-milan'), fc.string()),
      namespace: fc.constantFrom('liqo-tenant-milan', undefined),
    });
    fc.assert(
      fc.property(metadata, fc.dictionary(fc.string(), fc.jsonValue()), ({ name, namespace }, more) => {
        const manifest: KubeManifest = {
          ...more,
          apiVersion: apiVersionOf(type),
          kind,
          metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
        };
        expect(refusal(manifest, role)).toContain(`may not apply ${apiVersionOf(type)} ${kind} to a ${role}`);
      }),
    );
  });
});

/** Keys that some kind accepts, keys that Kubernetes and JavaScript give a meaning, and any other. */
const keys = fc.oneof(
  fc.constantFrom(
    ...brokerKinds.flatMap(({ accepted: rule }) =>
      rule === undefined
        ? []
        : [...rule.labels, ...rule.annotations, ...Object.keys(rule.members), ...Object.values(rule.members).flat()],
    ),
    ...['spec', 'status', 'data', 'stringData', 'immutable', 'finalizers', 'ownerReferences', 'managedFields'],
    ...['generateName', 'deletionTimestamp', 'kubernetes.io/metadata.name', 'liqo.io/cordon'],
    ...['constructor', 'toString', 'hasOwnProperty', '__proto__'],
  ),
  fc.string(),
);
const values = fc.oneof(
  fc.constantFrom('true', 'milan'),
  fc.string(),
  fc.jsonValue(),
  fc.dictionary(keys, fc.jsonValue()),
);

/** With an own property even for `__proto__`, as `JSON.parse` makes it. */
const withKey = <T extends object>(object: T | undefined, key: string, value: unknown): T =>
  Object.defineProperty({ ...object } as T, key, { value, enumerable: true, configurable: true, writable: true });

describe.each(accepted)('of a $kind for a $role is refused', ({ kind, role }) => {
  const rule = brokerKind(kind)?.accepted ?? expect.fail(kind);
  const good = sample(kind, role);
  const refused = (manifest: KubeManifest, says: RegExp): void => {
    expect(refusal(manifest, role)).toMatch(says);
  };
  const undeclared = (declared: readonly string[]) => keys.filter((key) => !declared.includes(key));

  test('any member that the kind does not declare', () => {
    const declared = ['apiVersion', 'kind', 'metadata', ...Object.keys(rule.members)];
    fc.assert(
      fc.property(undeclared(declared), values, (key, value) => {
        refused(withKey(good, key, value), /is not accepted from a broker on a/);
      }),
    );
  });

  test.each(Object.entries(rule.members))('any field of %s that the kind does not declare', (member, fields) => {
    fc.assert(
      fc.property(undeclared(fields), values, (key, value) => {
        const parent = (good as Record<string, unknown>)[member];
        const changed = withKey(typeof parent === 'object' && parent !== null ? parent : {}, key, value);
        refused({ ...good, [member]: changed }, /is not accepted from a broker on a/);
      }),
    );
  });

  test('any label and any annotation that the kind does not declare', () => {
    for (const member of ['labels', 'annotations'] as const) {
      fc.assert(
        fc.property(undeclared(rule[member]), fc.string(), (key, value) => {
          const metadata = { ...good.metadata, [member]: withKey(good.metadata[member], key, value) };
          refused({ ...good, metadata }, /^label or annotation .* is not accepted from a broker on a/s);
        }),
      );
    }
  });

  test('any further field of its metadata', () => {
    fc.assert(
      fc.property(undeclared(['name', 'namespace', 'labels', 'annotations']), values, (key, value) => {
        refused({ ...good, metadata: withKey(good.metadata, key, value) }, /^metadata\..* is not accepted/s);
      }),
    );
  });

  test('any other name and any other namespace', () => {
    const others = fc.oneof(
      fc.constantFrom('milan', 'rome', 'gw-milan', 'liqo-tenant-rome', 'liqo-tenant-milan', 'kube-system', 'liqo', ''),
      fc.string(),
    );
    const names = rule.names(desiredSet(role));
    fc.assert(
      fc.property(
        others.filter((name) => !names.includes(name)),
        fc.option(others, { nil: undefined }).filter((namespace) => namespace !== good.metadata.namespace),
        (name, namespace) => {
          refused({ ...good, metadata: { ...good.metadata, name } }, /^metadata\.name is/);
          const { namespace: _, ...rest } = good.metadata;
          const metadata = { ...rest, ...(namespace === undefined ? {} : { namespace }) };
          refused({ ...good, metadata }, /^metadata\.namespace is/);
        },
      ),
    );
  });

  test('any other version of its API', () => {
    fc.assert(
      fc.property(
        fc.string().filter((version) => version !== good.apiVersion),
        (apiVersion) => {
          refused({ ...good, apiVersion }, /^a broker may not apply/);
        },
      ),
    );
  });
});
