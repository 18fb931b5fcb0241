/** Which CNI a node has, by its files, its DaemonSets and its devices. */
import { describe, expect, test } from 'vitest';
import { detectCni } from './cni.ts';

describe('the CNI of a node', () => {
  const conflist = (name: string, ...types: string[]) =>
    JSON.stringify({ name, plugins: types.map((type) => ({ type })) });
  test.each([
    [
      'kindnet by the name of its network',
      { '10-kindnet.conflist': conflist('kindnet', 'ptp', 'portmap') },
      [],
      'kindnet',
    ],
    ['Flannel', { '10-flannel.conflist': conflist('cbr0', 'flannel', 'portmap') }, [], 'flannel'],
    [
      'Flannel by its DaemonSet, when it delegates',
      { '10-x.conflist': conflist('cbr0', 'bridge') },
      ['kube-flannel-ds'],
      'flannel',
    ],
    ['Calico', { '10-calico.conflist': conflist('k8s-pod-network', 'calico', 'bandwidth') }, [], 'calico'],
    [
      'Cilium, and the first file counts',
      { '05-cilium.conflist': conflist('cilium', 'cilium-cni'), '10-flannel.conflist': conflist('cbr0', 'flannel') },
      [],
      'cilium',
    ],
    ['AWS', { '10-aws.conflist': conflist('aws-cni', 'aws-cni', 'egress-cni') }, [], 'aws'],
    ['a plain bridge', { '10-bridge.conf': JSON.stringify({ name: 'mynet', type: 'bridge' }) }, [], 'bridge'],
    ['nothing known', { '10-x.conf': 'no json' }, [], 'unknown'],
    ['nothing at all', {}, [], 'unknown'],
  ])('is recognised: %s', (_, configurations, daemonSets, name) => {
    expect(detectCni({ configurations: configurations as Record<string, string>, daemonSets }).name).toBe(name);
  });

  test.each([
    [['lo', 'eth0', 'cni0', 'veth12345678'], 'bridge'],
    [['lo', 'cni0', 'flannel.1'], 'flannel'],
    [['lo', 'cali0123456789a', 'tunl0'], 'calico'],
    [['lo', 'cilium_host', 'cilium_net', 'lxc_health'], 'cilium'],
    [['lo', 'eth0', 'eni0123456789a'], 'aws'],
    [['lo', 'eth0', 'docker0'], 'unknown'],
  ])('is recognised by its devices %j, where its files are not found: %s', (devices, name) => {
    expect(detectCni({ configurations: {}, daemonSets: [], devices }).name).toBe(name);
  });

  test('is what its files say, independent of other devices on the node', () => {
    const configurations = { '10-flannel.conflist': conflist('cbr0', 'flannel') };
    expect(detectCni({ configurations, daemonSets: [], devices: ['cilium_host'] }).name).toBe('flannel');
  });
});
