import { describe, expect, test } from 'vitest';
import { checkHost, type HostFacts, hostObstacle } from './host-check.ts';

const good: HostFacts = { platform: 'linux', arch: 'x64', uid: 0, hasTun: true, canWriteCgroups: true };

describe('the check of the machine', () => {
  test('lets a fitting machine pass', () => {
    expect(hostObstacle(good)).toBeUndefined();
    expect(() => checkHost(good)).not.toThrow();
  });

  test.each([
    { lacks: 'Linux', facts: { platform: 'darwin' }, says: 'needs Linux, this is darwin' },
    { lacks: 'root', facts: { uid: 1000 }, says: 'needs root, you are user 1000: use sudo' },
    { lacks: 'a known architecture', facts: { arch: 'arm64' }, says: 'x64 only, this machine is arm64' },
    { lacks: 'writable cgroups', facts: { canWriteCgroups: false }, says: '/sys/fs/cgroup is not writable' },
    { lacks: 'tun devices', facts: { hasTun: false }, says: 'modprobe tun' },
  ])('says what to do on a machine without $lacks', ({ facts, says }) => {
    expect(() => checkHost({ ...good, ...facts })).toThrow(
      expect.objectContaining({ code: 'host_unsupported', message: expect.stringContaining(says) }),
    );
  });
});
