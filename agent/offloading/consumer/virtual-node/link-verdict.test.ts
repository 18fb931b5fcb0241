import { describe, expect, test } from 'vitest';
import { type LinkSight, linkVerdict } from './link-verdict.ts';

const always = Number.NEGATIVE_INFINITY;
const sight = (more: Partial<LinkSight>): LinkSight => ({
  network: 'down',
  downSince: 100_000,
  nodeReady: true,
  answered: { lookedAt: 100_000, since: always },
  ...more,
});

describe('a link that went down under a Node that is Ready', () => {
  test('counts once the provider has answered since', () => {
    expect(linkVerdict(sight({}))).toBe('down');
    expect(linkVerdict(sight({ answered: { lookedAt: 99_999, since: always } }))).toBe('up');
  });

  test('has ten seconds to come back after an outage of the provider', () => {
    expect(linkVerdict(sight({ answered: { lookedAt: 129_999, since: 120_000 } }))).toBe('up');
    expect(linkVerdict(sight({ answered: { lookedAt: 130_000, since: 120_000 } }))).toBe('down');
  });
});

test('a Node that is not Ready does not become so by a link that is down', () => {
  expect(linkVerdict(sight({ nodeReady: false, answered: { lookedAt: 0, since: 0 } }))).toBe('down');
});

test.each(['up', 'none', 'unknown'] as const)('a link that is %s is what it is', (network) => {
  expect(linkVerdict(sight({ network, answered: { lookedAt: 0, since: 0 } }))).toBe(network);
});
