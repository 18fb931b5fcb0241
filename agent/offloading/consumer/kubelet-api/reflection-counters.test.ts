import { expect, test } from 'vitest';
import { ReflectionCounters } from './reflection-counters.ts';

test('items and failures are told apart, by node, and those of a node that is gone are not told', () => {
  const counters = new ReflectionCounters();
  const vn1 = counters.of('vn1', 'prov');
  vn1.reconciled('offloaded-pod', 'settled', 0.1, 'demo/web');
  vn1.reconciled('offloaded-pod', 'error', 0.1, 'demo/db');
  vn1.reconciled('reflect-secret', 'settled', 0.1, 'demo/key');
  vn1.reconciled('virtual-node', 'settled', 0.1, 'liqo/vn1');
  counters.of('vn2', 'prov').reconciled('offloaded-pod', 'settled', 0.1, 'demo/web');
  const labels = (kind: string, node = 'vn1') =>
    `{namespace="demo",reflector_resource="${kind}",cluster_id="prov",node_name="${node}"}`;
  const lines = () =>
    counters
      .text()
      .split('\n')
      .filter((line) => line.startsWith('liqo'));
  const items = 'liqo_virtual_kubelet_reflection_item_counter';
  const errors = 'liqo_virtual_kubelet_reflection_error_counter';
  expect(lines()).toEqual([
    `${items}${labels('Pod')} 2`,
    `${items}${labels('Secret')} 1`,
    `${items}${labels('Pod', 'vn2')} 1`,
    `${errors}${labels('Pod')} 1`,
    `${errors}${labels('Secret')} 0`,
    `${errors}${labels('Pod', 'vn2')} 0`,
  ]);
  counters.forget('vn1');
  expect(lines()).toEqual([`${items}${labels('Pod', 'vn2')} 1`, `${errors}${labels('Pod', 'vn2')} 0`]);
});
