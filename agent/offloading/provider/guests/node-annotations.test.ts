/** Which annotations of guests' pods nodes of the provider would obey: whole groups of keys, with any name in them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { safeRules } from './decide.ts';
import { guestAnnotations, limitations } from './guest-spec.ts';
import { isForNodes } from './node-annotations.ts';

test.each([
  ['CDI and its vendors', ['cdi.k8s.io/gpu', 'nvidia.cdi.k8s.io/container.app', 'amd.cdi.k8s.io/pod']],
  ['plugins for GPUs', ['nvidia.com/gpu-driver', 'hami.io/vgpu-devices-to-allocate']],
  [
    'CRI-O by its first names',
    ['userns-mode', 'Devices', 'TrySkipVolumeSELinuxLabel', 'ShmSize', 'UnifiedCgroup.app', 'PlatformRuntimePath'].map(
      (name) => `io.kubernetes.cri-o.${name}`,
    ),
  ],
  [
    'CRI-O by its later names',
    ['cpu-quota', 'cpu-load-balancing', 'irq-load-balancing', 'devices', 'userns-mode'].map(
      (name) => `${name}.crio.io`,
    ),
  ],
  ['CRI-O for one container', ['cpu-shared.crio.io/app', 'seccomp-profile.kubernetes.cri-o.io/POD']],
  ['Kata', ['io.katacontainers.config.hypervisor.path', 'com.github.containers.virtcontainers.KernelPath']],
  ['gVisor', ['dev.gvisor.spec.mount.data.type', 'dev.gvisor.flag.debug']],
  ['containerd', ['io.kubernetes.cri.untrusted-workload', 'io.kubernetes.cri.rdt-class', 'io.containerd.runc.v2']],
  [
    'plugins of NRI',
    [
      ...['devices.nri.io/container.app', 'mounts.nri.io/pod', 'ulimits.nri.containerd.io/container.app'],
      ...['prefer-isolated-cpus.resource-policy.nri.io/pod', 'balloon.balloons.resource-policy.nri.io'],
    ],
  ],
  ['classes of caches and disks', ['rdt.resources.beta.kubernetes.io/pod', 'blockio.resources.beta.kubernetes.io/pod']],
  [
    'runc and crun',
    ['run.oci.hooks.stdout', 'org.criu.config', 'org.systemd.property.DeviceAllow', 'module.wasm.image/variant'],
  ],
  ['networks', ['k8s.v1.cni.cncf.io/networks', 'net1.shop.ovn.kubernetes.io/logical_switch', 'ipam.antrea.io/ippools']],
])('those of %s are left out', (_, keys) => {
  const annotations = Object.fromEntries(keys.map((key) => [key, 'x']));
  expect(guestAnnotations(annotations, safeRules)).toEqual({});
  expect(limitations({ containers: [] }, annotations, safeRules)).toHaveLength(1);
});

const segment = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$/);
const label = fc.stringMatching(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,12}[A-Za-z0-9])?$/);
const below = (domain: string) =>
  fc
    .tuple(fc.array(segment, { maxLength: 3 }), fc.option(label))
    .map(([names, name]) => [...names, domain].join('.') + (name === null ? '' : `/${name}`));
const under = (group: string) =>
  fc.tuple(fc.constantFrom('.', '/'), label).map(([between, rest]) => `${group}${between}${rest}`);

test('any name before a domain of nodes, and behind a reversed one, is left out, in upper and lower case', () => {
  const owned = fc.oneof(
    fc.constantFrom('cdi.k8s.io', 'nri.io', 'crio.io', 'cri-o.io', 'cni.cncf.io', 'ovn.kubernetes.io').chain(below),
    fc
      .constantFrom('io.kubernetes.cri-o', 'io.kubernetes.cri', 'io.katacontainers', 'dev.gvisor', 'run.oci')
      .chain(under),
  );
  const written = fc.tuple(owned, fc.boolean()).map(([key, loud]) => (loud ? key.toUpperCase() : key));
  fc.assert(
    fc.property(written, (key) => {
      expect(guestAnnotations({ [key]: 'x' }, safeRules)).toEqual({});
      expect(guestAnnotations({ [key]: 'x' }, { ...safeRules, nodeAnnotations: [key] })).toEqual({ [key]: 'x' });
    }),
  );
});

test('what only looks like one stays, as does what applications and their operators read', () => {
  const like = fc
    .tuple(segment, fc.constantFrom('cdi.k8s.io', 'crio.io', 'nri.io', 'cilium.io'), segment, label)
    .chain(([before, domain, after, name]) =>
      fc.constantFrom(
        `${before}${domain}/${name}`,
        `${domain}.${after}.example/${name}`,
        `example.com/${domain}.${name}`,
      ),
    );
  const groups = fc.tuple(fc.constantFrom('io.katacontainers', 'dev.gvisor', 'run.oci'), segment);
  fc.assert(fc.property(like, (key) => void expect(isForNodes(key)).toBe(false)));
  fc.assert(fc.property(groups, ([group, more]) => void expect(isForNodes(`${group}${more}.x`)).toBe(false)));
  const usual = {
    ...{ note: 'x', 'prometheus.io/scrape': 'true', 'kubectl.kubernetes.io/restartedAt': 'x', 'checksum/config': 'x' },
    ...{
      'sidecar.istio.io/inject': 'true',
      'vault.hashicorp.com/role': 'x',
      'cluster-autoscaler.kubernetes.io/safe-to-evict': 'x',
    },
  };
  expect(guestAnnotations(usual, safeRules)).toBe(usual);
});
