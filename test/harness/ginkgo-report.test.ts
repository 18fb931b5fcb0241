import { describe, expect, it } from 'vitest';
import { brokenBefore, type GinkgoReport, outcomesOf, pendingSpecs, selectedSpecs } from './ginkgo-report.ts';

const spec = (name: string, State: string, more: object = {}) => ({
  ContainerHierarchyTexts: ['[sig-node] Pods'],
  LeafNodeType: 'It',
  LeafNodeText: name,
  State,
  RunTime: 2_400_000_000,
  ...more,
});
const report: GinkgoReport = [
  {
    SpecReports: [
      { ...spec('', 'passed'), LeafNodeType: 'SynchronizedBeforeSuite' },
      spec('runs', 'passed'),
      spec('was not selected', 'skipped'),
      spec('has no node', 'skipped', { Failure: { Message: 'needs 2 nodes' } }),
      spec('breaks', 'failed', { Failure: { Message: 'no', Location: { FileName: '/a/pods.go', LineNumber: 9 } } }),
      spec('is cut off', 'interrupted'),
      spec('is for later', 'pending'),
    ],
  },
];

describe('what a suite says', () => {
  it('is passed, failed with its place, or not applicable with its words; specs that were not selected are left out', () => {
    expect(outcomesOf(report)).toEqual([
      { spec: '[sig-node] Pods runs', state: 'passed', seconds: 2, message: '' },
      { spec: '[sig-node] Pods has no node', state: 'not applicable', seconds: 2, message: 'needs 2 nodes' },
      { spec: '[sig-node] Pods breaks', state: 'failed', seconds: 2, message: 'pods.go:9: no' },
      { spec: '[sig-node] Pods is cut off', state: 'failed', seconds: 2, message: ': interrupted' },
    ]);
  });

  it('is, where it could not begin, why', () => {
    const begin = {
      ...spec('', 'failed', { Failure: { Message: 'no nodes' } }),
      LeafNodeType: 'SynchronizedBeforeSuite',
    };
    expect(brokenBefore([{ SpecReports: [begin] }])).toBe('no nodes');
    expect(brokenBefore(report)).toBeUndefined();
  });

  it('is, of a dry run, which specs there are', () => {
    expect(selectedSpecs(report)).toEqual(['[sig-node] Pods runs']);
  });

  it('has the names by which it is told what to run: containers without a text are not in them', () => {
    const nested = {
      ...spec('should run', 'passed'),
      ContainerHierarchyTexts: ['[sig-storage] Driver', '', 'snapshots'],
    };
    expect(selectedSpecs([{ SpecReports: [nested] }])).toEqual(['[sig-storage] Driver snapshots should run']);
  });

  it('is which specs it never runs', () => {
    expect(pendingSpecs(report)).toEqual(['[sig-node] Pods is for later']);
  });
});
