import { expect, test } from 'vitest';
import { planCluster } from '../spec.ts';
import { routerRules, vpcNodeSetUp } from './vpc-network.ts';

const cluster = planCluster(0, 1, { name: 'rome', nodes: 2, podCidr: '10.50.0.0/16', cni: 'vpc' });

test('the router of a VPC knows each node by its elastic address, and lets nothing else out', () => {
  expect(routerRules(cluster)).toMatchInlineSnapshot(`
    "table ip vpc {
      chain prerouting {
        type nat hook prerouting priority dstnat; policy accept;
        dnat to ip daddr map { 198.18.1.11 : 10.50.0.11, 198.18.1.12 : 10.50.0.12 }
      }
      chain forward {
        type filter hook forward priority filter; policy accept;
        iifname "vpc" oifname "out" ip saddr != { 10.50.0.11, 10.50.0.12 } drop
      }
      chain postrouting {
        type nat hook postrouting priority srcnat; policy accept;
        oifname "out" snat to ip saddr map { 10.50.0.11 : 198.18.1.11, 10.50.0.12 : 198.18.1.12 }
        ip saddr 10.50.0.0/16 ct status dnat snat to ip saddr map { 10.50.0.11 : 198.18.1.11, 10.50.0.12 : 198.18.1.12 }
      }
    }
    "
  `);
});

test('a node in a VPC does not know its elastic address, and answers for those of pods at the interface they belong to', () => {
  for (const { ip, vpc } of cluster.nodes) {
    const lines = vpcNodeSetUp(cluster, vpc!).lines;
    expect(lines.filter((line) => line.includes(ip))).toEqual([]);
    expect(lines.slice(0, 3)).toEqual([
      `addr add ${vpc!.ip}/24 dev eth0`,
      'link set eth0 up',
      'route add default via 10.50.0.1',
    ]);
    const answered = vpc!.interfaces.flatMap(({ name, secondary }) =>
      secondary.map((each) => `neigh add proxy ${each} dev ${name}`),
    );
    expect(lines.slice(3)).toEqual(answered);
    expect(answered).toHaveLength(62);
  }
});
