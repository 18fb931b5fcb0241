import { expect, test } from 'vitest';
import { buildInternalNode, buildNodeIp, collisionMessage, interfaceName, nodeOfIp } from './decide.ts';

test('a node has one interface name for ever, as Liqo would write it, and no other node has it', () => {
  const names = Array.from(
    { length: 2_000 },
    (_, i) => buildInternalNode(`n${i}`, '10.80.0.1').spec?.interface?.gateway?.name,
  );
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^liqo\.[0-9a-z]{10}$/);
  expect(interfaceName('node n1')).toBe(buildInternalNode('n1', '10.80.9.9').spec?.interface?.gateway?.name);
});

test('the IP by which peers see a node is named after it and leads to its overlay address', () => {
  const ip = buildNodeIp('n1', 'liqo', '10.80.0.1');
  expect(ip).toMatchObject({ metadata: { name: 'node-n1', namespace: 'liqo' }, spec: { ip: '10.80.0.1' } });
  expect(nodeOfIp(ip.metadata.name)).toBe('n1');
});

test.each([
  ['host-a', undefined],
  ['node-', ''],
  ['node-n1.example.org', 'n1.example.org'],
])('the IP %s belongs to node %s', (name, node) => {
  expect(nodeOfIp(name)).toBe(node);
});

test('what a node has although others were granted it is told by range and holder', () => {
  expect(collisionMessage('n1', [])).toBeUndefined();
  const text = collisionMessage('n1', [{ range: '10.71.1.0/24', with: ['Network a/b', 'Network c/d'] }]);
  expect(text).toContain('10.71.1.0/24 of node n1 overlaps Network a/b, Network c/d');
});
