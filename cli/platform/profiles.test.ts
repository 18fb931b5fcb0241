import { describe, expect, test } from 'vitest';
import { findCni } from './cni.ts';
import { clusterFacts, knownClusters, nodeFacts } from './known-clusters.ts';
import { findProfile, profileNames } from './profiles.ts';

describe('the distribution of a cluster', () => {
  test.each(profileNames.map((name) => ({ name })))('$name is found by what its objects say', ({ name }) => {
    const { profile, because } = findProfile(knownClusters[name]);
    expect(profile.name).toBe(name);
    expect(because).not.toBe('');
  });

  test('is what a person says, against all facts', () => {
    expect(findProfile(knownClusters.eks, 'kubeadm')).toMatchObject({
      profile: { name: 'kubeadm' },
      because: '--profile',
    });
  });

  test('is told by one node of many', () => {
    const nodes = [nodeFacts({ name: 'a' }), nodeFacts({ name: 'b', osImage: 'Talos (v1.11.2)' })];
    expect(findProfile(clusterFacts({ nodes }))).toMatchObject({
      profile: { name: 'talos' },
      because: 'operating system Talos (v1.11.2) of node b',
    });
  });
});

describe('the CNI', () => {
  test.each([
    ['eks', 'Amazon VPC CNI'],
    ['gke', 'Cilium'],
    ['aks', 'Azure CNI'],
    ['openshift', 'OVN-Kubernetes'],
    ['kind', 'kindnet'],
    ['rke2', 'Calico'],
    ['talos', 'Flannel'],
    ['k0s', 'kube-router'],
    ['k3s', undefined],
  ] as const)('of %s is %s', (name, cni) => {
    expect(findCni(knownClusters[name])?.name).toBe(cni);
  });

  const set = (name: string, env: Record<string, string> = {}) => ({ namespace: 'kube-system', name, env });
  test('Cilium in place of kube-proxy is named with what that means', () => {
    const found = findCni(
      clusterFacts({
        daemonSets: [set('kube-proxy'), set('cilium')],
        settings: {
          'kube-system/cilium-config': {
            'kube-proxy-replacement': 'true',
            'routing-mode': 'tunnel',
            devices: 'eth+ liqo+',
          },
        },
      }),
    );
    expect(found?.settings).toEqual(['routing-mode=tunnel', 'kube-proxy-replacement=true', 'devices=eth+ liqo+']);
    expect(found?.cautions).toEqual([expect.stringContaining('NodePorts'), expect.stringContaining('devices')]);
  });

  test.each([
    [{ CALICO_NETWORKING_BACKEND: 'bird', IP_AUTODETECTION_METHOD: 'first-found' }, 1],
    [{ CALICO_NETWORKING_BACKEND: 'bird' }, 1],
    [{ CALICO_NETWORKING_BACKEND: 'bird', IP_AUTODETECTION_METHOD: 'skip-interface=liqo.*' }, 0],
    [{ CALICO_NETWORKING_BACKEND: 'vxlan' }, 0],
  ])('Calico with %j needs %i words of caution', (env, count) => {
    expect(findCni(clusterFacts({ daemonSets: [set('calico-node', env)] }))?.cautions).toHaveLength(count);
  });

  test('Flannel is named with its backend', () => {
    const settings = {
      'kube-flannel/kube-flannel-cfg': { 'net-conf.json': '{"Network":"10.244.0.0/16","Backend":{"Type":"host-gw"}}' },
    };
    expect(findCni(clusterFacts({ daemonSets: [set('kube-flannel-ds')], settings }))?.settings).toEqual([
      'backend host-gw',
    ]);
  });
});
