import { describe, expect, test } from 'vitest';
import { clusterSelector } from './selector.ts';

describe('the selector of offload', () => {
  test.each([
    { text: 'region=eu', expressions: [{ key: 'region', operator: 'In', values: ['eu'] }] },
    { text: 'region==eu', expressions: [{ key: 'region', operator: 'In', values: ['eu'] }] },
    { text: 'region!=eu', expressions: [{ key: 'region', operator: 'NotIn', values: ['eu'] }] },
    { text: 'liqo.io/type', expressions: [{ key: 'liqo.io/type', operator: 'Exists' }] },
    { text: '!gpu', expressions: [{ key: 'gpu', operator: 'DoesNotExist' }] },
    {
      text: 'region in (eu, us), tier notin (spot)',
      expressions: [
        { key: 'region', operator: 'In', values: ['eu', 'us'] },
        { key: 'tier', operator: 'NotIn', values: ['spot'] },
      ],
    },
  ])('$text is one term of ANDed requirements', ({ text, expressions }) => {
    expect(clusterSelector([text])).toEqual({ nodeSelectorTerms: [{ matchExpressions: expressions }] });
  });

  test('given twice is two terms, of which one suffices', () => {
    expect(clusterSelector(['a=1', 'b=2'])?.nodeSelectorTerms).toHaveLength(2);
  });

  test('not given is no selector', () => {
    expect(clusterSelector([])).toBeUndefined();
  });

  test.each(['', 'a=b=c', 'a in eu', '=x', 'a,,b'])('%j is refused with what is accepted', (text) => {
    expect(() => clusterSelector([text])).toThrow(/accepted are key=value/);
  });
});
