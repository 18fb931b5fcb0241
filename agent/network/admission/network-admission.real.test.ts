/** Admission of the network kinds as a real API server asks for it, with kubectl. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';

let under: WebhookCluster;
beforeAll(async () => {
  under = await startWebhookCluster();
  // The last of our entries answers: the API server knows them all.
  await until(async () => expect(await create('Network', 'probe', { cidr: '127.0.0.0/8' })).toMatch(/loopback/));
}, 900_000);
afterAll(async () => await under?.stop());

const peer = { 'liqo.io/remote-cluster-id': 'milan' };

const create = (kind: string, name: string, spec: object, labels: Record<string, string> = {}, namespace = 'plain') =>
  under.create({
    apiVersion: ['Network', 'IP'].includes(kind) ? 'ipam.liqo.io/v1alpha1' : 'networking.liqo.io/v1beta1',
    kind,
    metadata: { namespace, name, labels },
    spec,
  });

describe('a real API server with our admission', () => {
  test('takes one link for each peer', async () => {
    const endpoint = { port: 51_840 };
    expect(await create('GatewayServer', 'milan', { mtu: 1340, endpoint }, peer)).toMatch(/created/);
    expect(await create('GatewayClient', 'milan', {}, peer)).toMatch(
      /gateway\.validate\.liqo\.io.*is milan, to which GatewayServer plain\/milan is the link already.*already_exists/,
    );
    expect(await create('GatewayServer', 'again', { endpoint }, peer, 'liqo')).toMatch(/already_exists/);
    expect(await create('GatewayClient', 'peerless', {})).toMatch(/remote-cluster-id\] is missing/);
    expect(await create('GatewayServer', 'small', { mtu: 1200, endpoint }, peer)).toMatch(
      /spec\.mtu: Invalid value: 1200.*greater than or equal to 1280/,
    );
    expect(await under.kubectl(['-n', 'plain', 'delete', 'gatewayserver', 'milan'])).toMatch(/deleted/);
    expect(await create('GatewayClient', 'milan', {}, peer)).toMatch(/created/);
  });

  test('refuses ranges of a peer that overlap, are malformed, or belong to no peer', async () => {
    const remote = (...pod: string[]) => ({ remote: { cidr: { pod, external: ['10.70.0.0/16'] } } });
    expect(await create('Configuration', 'a', remote('10.70.1.0/24'), peer)).toMatch(
      /spec\.remote\.cidr\.external\[0\] is 10\.70\.0\.0\/16, which overlaps spec\.remote\.cidr\.pod\[0\]/,
    );
    expect(await create('Configuration', 'a', remote('10.0.0.0/40'), peer)).toMatch(
      /pod\[0\]: Invalid value: "10\.0\.0\.0\/40"/,
    );
    expect(await create('Configuration', 'a', remote('169.254.18.0/24'), peer)).toMatch(/link-local/);
    expect(await create('Configuration', 'a', remote('10.200.0.0/16'), peer)).toMatch(/created/);
    expect(await create('PublicKey', 'a', { publicKey: 'c2hvcnQ=' }, peer)).toMatch(/spec\.publicKey.*32 bytes/);
  });

  test('refuses reserved ranges that overlap, and changes of what was granted', async () => {
    const labels = {
      'ipam.liqo.io/network-type': 'reserved',
      'ipam.liqo.io/network-not-remapped': 'true',
      'ipam.liqo.io/network-shared': 'true',
    };
    expect(await create('Network', 'a', { cidr: '172.16.0.0/12' }, labels)).toMatch(/created/);
    expect(await create('Network', 'b', { cidr: '172.20.0.0/16' }, labels)).toMatch(
      /spec\.cidr is 172\.20\.0\.0\/16, which overlaps 172\.16\.0\.0\/12 of Network plain\/a \(reserved\)/,
    );
    const change = ['-n', 'plain', 'patch', 'network.ipam.liqo.io', 'a', '--type=merge', '-p'];
    expect(await under.kubectl([...change, '{"spec":{"cidr":"172.16.0.0/16"}}'])).toMatch(/cidr is immutable/);
    expect(await create('IP', 'a', { ip: '192.0.2.1' })).toMatch(/created/);
    await under.cluster.api.mergePatch(
      networkKinds.ips,
      { namespace: 'plain', name: 'a' },
      { status: { ip: '10.70.0.1' } },
      { subresource: 'status' },
    );
    const again = ['-n', 'plain', 'patch', 'ip.ipam.liqo.io', 'a', '--subresource=status', '--type=merge', '-p'];
    expect(await under.kubectl([...again, '{"status":{"ip":"10.70.0.2"}}'])).toMatch(/ip is immutable/);
  });

  test('names the rules of a firewall, checks them, and lets skipped objects pass', async () => {
    const target = { 'networking.liqo.io/firewall-category': 'gateway' };
    const spec = (hook: string, name = 'extra') => ({
      table: {
        name,
        family: 'IPV4',
        chains: [
          {
            name: 'c',
            type: 'nat',
            policy: 'accept',
            hook,
            rules: { natRules: [{ match: [], natType: 'masquerade' }] },
          },
        ],
      },
    });
    expect(await create('FirewallConfiguration', 'good', spec('postrouting'), target)).toMatch(/created/);
    const ref = { namespace: 'plain', name: 'good' };
    const [chain] = (await under.cluster.api.get(networkKinds.firewallConfigurations, ref))?.spec.table.chains ?? [];
    expect(chain?.rules.natRules?.[0]?.name).toMatch(/^[0-9a-f-]{36}$/);
    expect(await create('FirewallConfiguration', 'bad', spec('prerouting', 'other'), target)).toMatch(
      /natRules\[0\]\.natType is masquerade: accepted in prerouting is dnat/,
    );
    expect(await create('FirewallConfiguration', 'twin', spec('postrouting'), target)).toMatch(/already_exists/);
    const skipped = { ...target, 'liqo.io/webhook-skip': 'true' };
    expect(await create('FirewallConfiguration', 'bad', spec('prerouting'), skipped)).toMatch(/created/);
    expect(await create('FirewallConfiguration', 'idle', spec('postrouting', 'idle'))).toMatch(/no node or gateway/);
  });

  test('refuses routes that the kernel would', async () => {
    const table = (dst: string) => ({ table: { name: 'extra', rules: [{ dst, routes: [{ dst, dev: 'eth0' }] }] } });
    const target = { 'networking.liqo.io/route-category': 'fabric' };
    expect(await create('RouteConfiguration', 'a', table('10.0.0.1/8'), target)).toMatch(/accepted is 10\.0\.0\.0\/8/);
    expect(await create('RouteConfiguration', 'a', table('10.0.0.0/8'), target)).toMatch(/created/);
    expect(await create('RouteConfiguration', 'b', table('10.0.0.0/8'), target)).toMatch(/already_exists/);
  });

  test('shows the columns of the reference', async () => {
    const shown = await under.kubectl(['-n', 'plain', 'get', 'configurations.networking.liqo.io', '-o', 'wide']);
    expect(shown).toMatch(/DESIRED POD CIDR.*REMAPPED POD CIDR.*DESIRED EXTERNAL CIDR.*AGE.*CLUSTERID/);
    expect(shown).toMatch(/\["10\.200\.0\.0\/16"\].*milan/);
    expect(await under.kubectl(['-n', 'plain', 'get', 'ips'])).toMatch(
      /LOCAL IP +REMAPPED IP +REMAPPED IP CIDR +AGE\n.*192\.0\.2\.1 +10\.70\.0\.1/,
    );
  });
});
