import { describe, expect, test } from 'vitest';
import { type GuestRules, safeRules } from '../guests/decide.ts';
import { validateGuestIngress, validateGuestService } from './exposure.ts';

const refused = (words: RegExp) => ({ allowed: false, code: 'sandbox_refused', message: expect.stringMatching(words) });
const annotated = (...keys: string[]) => ({
  metadata: { annotations: Object.fromEntries(keys.map((key) => [key, 'x'])) },
  spec: {},
});

describe('a Service of a guest', () => {
  test.each([
    { what: 'no external addresses', spec: { clusterIP: '10.0.0.1' }, allowed: true },
    { what: 'an empty list of them', spec: { externalIPs: [] }, allowed: true },
    { what: 'a foreign address', spec: { externalIPs: ['192.0.2.1'] }, allowed: false },
    { what: 'something else in their place', spec: { externalIPs: '192.0.2.1' }, allowed: false },
  ])('with $what is judged, whichever user asks', ({ spec, allowed }) => {
    expect(validateGuestService({ spec })).toMatchObject({ allowed });
    expect(validateGuestService({ spec }, undefined, safeRules)).toMatchObject({ allowed });
  });

  test.each([
    'external-dns.alpha.kubernetes.io/hostname',
    'service.beta.kubernetes.io/aws-load-balancer-type',
    'metallb.universe.tf/loadBalancerIPs',
    'networking.gke.io/load-balancer-type',
    'cert-manager.io/cluster-issuer',
  ])('does not give orders to controllers by %s, unless the policy has the key', (key) => {
    expect(validateGuestService(annotated(key), undefined, safeRules)).toMatchObject(
      refused(/^metadata\.annotations\[.*\] is "x": .*accepted are isthmus\.dev\/\*, .*guests\.annotations/),
    );
    const annotations = [`${key.split('/')[0]}/*`];
    expect(validateGuestService(annotated(key), undefined, { ...safeRules, annotations })).toEqual({ allowed: true });
  });

  test('keeps what tools write on ordinary ones', () => {
    const usual = ['kubectl.kubernetes.io/last-applied-configuration', 'meta.helm.sh/release-name', 'description'];
    expect(validateGuestService(annotated(...usual, 'liqo.io/allow-reflection'), undefined, safeRules).allowed).toBe(
      true,
    );
  });

  test('is not refused for what is there already, or was written by a controller of the provider', () => {
    const before = annotated('cloud.google.com/neg-status');
    expect(validateGuestService(before, undefined).allowed).toBe(true);
    expect(validateGuestService(before, before, safeRules).allowed).toBe(true);
  });

  test('does not choose the address of its load balancer', () => {
    const service = { spec: { type: 'LoadBalancer', loadBalancerIP: '192.0.2.7' } };
    expect(validateGuestService(service, undefined, safeRules)).toMatchObject(
      refused(/spec\.loadBalancerIP is 192.0.2.7/),
    );
    expect(validateGuestService(service, undefined, { ...safeRules, loadBalancerAddresses: true }).allowed).toBe(true);
  });
});

describe('a Service of a guest that leads by a name', () => {
  const named = (externalName: string) => ({ spec: { type: 'ExternalName', externalName } });
  const judge = (externalName: string, externalNames: string[] = [], before?: unknown) =>
    validateGuestService(named(externalName), before, { ...safeRules, externalNames });

  test.each(['169.254.169.254', 'metadata.google.internal', 'kubernetes.default.svc', 'db.example.com', ''])(
    'is refused by default: %s',
    (name) =>
      expect(judge(name)).toMatchObject(refused(/^spec\.externalName is .*accepted are none .*guests\.externalNames/)),
  );

  test('is accepted for the names of the policy, in any case and with the dot at the end, and for no other', () => {
    expect(judge('DB.example.com.', ['db.example.com']).allowed).toBe(true);
    expect(judge('a.example.com', ['*.example.com']).allowed).toBe(true);
    for (const other of ['example.com', 'evilexample.com', 'db.example.com.cluster.local', 'a.example.com/'])
      expect(judge(other, ['*.example.com', 'db.example.com']).allowed, other).toBe(false);
  });

  test('stays where it is there already, and does not come to lead elsewhere', () => {
    expect(judge('db.example.com', [], named('db.example.com')).allowed).toBe(true);
    expect(judge('vault.internal', [], named('db.example.com')).allowed).toBe(false);
    const hidden = { spec: { type: 'ClusterIP', externalName: 'vault.internal' } };
    expect(judge('vault.internal', [], hidden).allowed, 'a name that meant nothing before').toBe(false);
  });

  test('is the provider’s own business otherwise', () => {
    expect(validateGuestService(named('vault.internal')).allowed).toBe(true);
  });
});

test('a Service of a guest names the load balancer classes of the policy only', () => {
  const service = { spec: { type: 'LoadBalancer', loadBalancerClass: 'internal.example/lb' } };
  expect(validateGuestService(service, undefined, safeRules)).toMatchObject(
    refused(/^spec\.loadBalancerClass is internal\.example\/lb: accepted are none .*guests\.loadBalancerClasses/),
  );
  const rules = { ...safeRules, loadBalancerClasses: ['internal.example/*'] };
  expect(validateGuestService(service, undefined, rules).allowed).toBe(true);
  expect(validateGuestService(service, service, safeRules).allowed).toBe(true);
});

describe('an Ingress of a guest', () => {
  const ingress = (...hosts: (string | undefined)[]) => ({
    spec: { rules: hosts.map((host) => (host ? { host } : {})) },
  });
  const judge = (object: unknown, ingressHosts: string[] = [], before?: unknown) =>
    validateGuestIngress(object, before, { ...safeRules, ingressHosts } satisfies GuestRules);

  test('claims no host by default, and by a policy those that it names', () => {
    expect(judge(ingress('shop.example.com'))).toMatchObject(
      refused(/spec has host shop\.example\.com: .*accepted hosts are none \(guests\.ingressHosts/),
    );
    expect(judge(ingress('shop.example.com'), ['shop.example.com']).allowed).toBe(true);
    expect(judge(ingress('a.guests.example.com', '*.guests.example.com'), ['*.guests.example.com']).allowed).toBe(true);
    expect(judge(ingress('guests.example.com'), ['*.guests.example.com']).allowed).toBe(false);
    expect(judge(ingress('evilguests.example.com'), ['*.guests.example.com']).allowed).toBe(false);
  });

  test('never stands for every host, and names none for its certificate that it may not claim, unless all are accepted', () => {
    const some = ['shop.example.com'];
    expect(judge(ingress(undefined), some)).toMatchObject(refused(/for every host/));
    expect(judge({ spec: { defaultBackend: { service: { name: 's' } } } }, some)).toMatchObject(
      refused(/for every host/),
    );
    expect(judge({ spec: { tls: [{ hosts: ['bank.example.com'] }] } }, some)).toMatchObject(
      refused(/bank\.example\.com/),
    );
    expect(judge(ingress(undefined, 'any.example.com'), ['*']).allowed).toBe(true);
  });

  test('has no snippets, and none of the annotations by which controllers were taken over', () => {
    for (const key of ['configuration-snippet', 'server-snippet', 'auth-url', 'mirror-target', 'rewrite-target']) {
      const object = annotated(`nginx.ingress.kubernetes.io/${key}`);
      expect(judge(object)).toMatchObject(refused(new RegExp(`nginx\\.ingress\\.kubernetes\\.io/${key}\\] is`)));
    }
    expect(judge(annotated('nginx.ingress.kubernetes.io/proxy-body-size')).allowed).toBe(true);
  });

  test('stays when the policy changes, and is the provider’s own business otherwise', () => {
    expect(judge(ingress('old.example.com'), [], ingress('old.example.com')).allowed).toBe(true);
    expect(judge(ingress('old.example.com', 'new.example.com'), [], ingress('old.example.com')).allowed).toBe(false);
    expect(validateGuestIngress(ingress(undefined)).allowed).toBe(true);
  });
});
