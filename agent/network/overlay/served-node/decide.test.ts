import { describe, expect, test } from 'vitest';
import { decide } from './decide.ts';

describe('the mark of the node whose work is done beside the controllers', () => {
  test.each([
    { marked: [], served: 'a', wants: { mark: 'a', unmark: [] }, when: 'the controllers have come to a node' },
    { marked: ['a'], served: 'a', wants: { unmark: [] }, when: 'they stay there' },
    { marked: ['a'], served: 'b', wants: { mark: 'b', unmark: ['a'] }, when: 'they have moved' },
    {
      marked: ['a', 'b'],
      served: undefined,
      wants: { unmark: ['a', 'b'] },
      when: 'each node has a process of its own',
    },
    { marked: [], served: undefined, wants: { unmark: [] }, when: 'there never was another arrangement' },
  ])('is where it belongs when $when', ({ marked, served, wants }) => {
    expect(decide(marked, served)).toEqual(wants);
  });
});
