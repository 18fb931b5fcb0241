import { describe, expect, test } from 'vitest';
import { manifests, refusal } from '#agent/broker/testing/manifests.ts';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';

const configuration = manifests.Configuration('consumer');
const configurationOf = (pod: unknown, external: unknown = ['10.70.0.0/16'], more: object = {}): KubeManifest => ({
  ...configuration,
  spec: { remote: { cidr: { pod, external, ...more } } },
});

describe('refuses, naming the fault:', () => {
  test.each<{ what: string; manifest: KubeManifest; says: string }>([
    {
      what: 'the ranges of this cluster itself',
      manifest: { ...configuration, spec: { local: { cidr: { pod: ['10.0.0.0/16'], external: [] } } } },
      says: 'spec.local',
    },
    {
      what: 'a range that is none',
      manifest: configurationOf(['10.0.0.0/33']),
      says: 'spec.remote.cidr.pod is "10.0.0.0/33"',
    },
    { what: 'host bits', manifest: configurationOf(['10.0.0.1/16']), says: 'accepted is 10.0.0.0/16' },
    { what: 'all addresses', manifest: configurationOf(['0.0.0.0/0']), says: 'accepted is a prefix length of 8' },
    { what: 'loopback', manifest: configurationOf(['127.0.0.0/8']), says: 'loopback' },
    { what: 'the addresses of tunnels', manifest: configurationOf(['169.254.18.0/24']), says: 'link-local' },
    { what: 'a range that is no text', manifest: configurationOf([{ a: 1 }]), says: 'spec.remote.cidr.pod is' },
    {
      what: 'a range whose text would be a function of its own',
      manifest: configurationOf([{ toString: 1 }]),
      says: 'spec.remote.cidr.pod is',
    },
    { what: 'a list in a list', manifest: configurationOf([['10.0.0.0/16']]), says: 'spec.remote.cidr.pod is' },
    { what: 'no ranges', manifest: configurationOf([]), says: 'accepted is a list of 1 to 32' },
    { what: 'too many ranges', manifest: configurationOf(Array(33).fill('10.0.0.0/16')), says: '1 to 32 ranges' },
    { what: 'no external range', manifest: configurationOf(['10.0.0.0/16'], []), says: 'spec.remote.cidr.external' },
    { what: 'other members', manifest: configurationOf(['10.0.0.0/16'], ['10.1.0.0/16'], { x: [] }), says: 'cidr.x' },
  ])('$what', ({ manifest, says }) => {
    expect(refusal(manifest, 'consumer')).toContain(says);
  });
});
