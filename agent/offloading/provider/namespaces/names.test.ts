import fc from 'fast-check';
import { expect, test } from 'vitest';
import { safeRules } from '../guests/decide.ts';
import { guestNameProblem } from './names.ts';

const { namespaces: usual } = safeRules;
const infrastructure = [
  ...['cert-manager', 'argocd', 'istio-system', 'openshift-monitoring', 'kube-flannel', 'flux-system', 'monitoring'],
  ...['ingress-nginx', 'gatekeeper-system', 'tigera-operator', 'external-dns', 'cattle-system', 'vault'],
];

test.each(infrastructure)(
  '%s is refused although the provider does not have it, also where it ends with the ID of the consumer',
  (name) => {
    expect(guestNameProblem(name, 'rome', usual)).toMatch(/is reserved at this provider/);
    const consumer = name.split('-').at(-1) ?? '';
    expect(guestNameProblem(name, consumer, usual)).toMatch(/is reserved at this provider/);
    expect(guestNameProblem(name, 'rome', ['*', name])).toBeUndefined();
  },
);

test('by the default a name ends with the ID of the consumer, or is that of liqoctl’s network test', () => {
  for (const name of ['liqo-demo-rome', 'shop-rome', 'liqo-test-network'])
    expect(guestNameProblem(name, 'rome', usual)).toBeUndefined();
  for (const name of ['liqo-demo', 'demo', 'shop', 'shop-milan', 'rome'])
    expect(guestNameProblem(name, 'rome', usual)).toMatch(
      /accepted are names that end with -rome or liqo-test-network;/,
    );
});

test('`*` accepts names of applications as all of Liqo’s mappings make them', () => {
  for (const name of ['liqo-demo', 'demo', 'shop', 'podinfo', 'liqo-demo-rome'])
    expect(guestNameProblem(name, 'rome', ['*'])).toBeUndefined();
});

test('without any pattern in the policy only names with the suffix of the consumer are accepted', () => {
  expect(guestNameProblem('shop-rome', 'rome', [])).toBeUndefined();
  expect(guestNameProblem('-rome', 'rome', [])).toBeDefined();
  expect(guestNameProblem('shop', 'rome', [])).toMatch(/accepted are names that end with -rome;/);
  expect(guestNameProblem('team-a', 'rome', ['team-*'])).toBeUndefined();
});

test.each([{ accepted: usual }, { accepted: ['*'] }])(
  'no consumer, regardless of its ID and its namespace, gets a reserved name where $accepted are accepted',
  ({ accepted }) => {
    const id = fc.stringMatching(/^[a-z0-9]{1,8}$/);
    fc.assert(
      fc.property(id, fc.constantFrom(...infrastructure), (consumer, name) => {
        expect(guestNameProblem(name, consumer, accepted)).toBeDefined();
      }),
    );
  },
);
