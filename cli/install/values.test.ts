import { describe, expect, test } from 'vitest';
import { flagsOf, parseValues, withSettings } from './values.ts';

describe('values of an installation', () => {
  test('say what options say', () => {
    const values = parseValues(
      {
        clusterId: 'rome',
        labels: { tier: 'gold' },
        nodeProcess: 'own',
        network: { enabled: false, podCidrs: ['10.1.0.0/16'], serviceCidr: '10.96.0.0/12', fullMasquerade: true },
      },
      'a file',
    );
    expect(flagsOf(values)).toEqual({
      clusterId: 'rome',
      labels: { tier: 'gold' },
      nodeProcess: 'own',
      network: false,
      podCidr: ['10.1.0.0/16'],
      serviceCidr: '10.96.0.0/12',
      fullMasquerade: true,
    });
    expect(flagsOf(parseValues(undefined, 'an empty file'))).toEqual({});
  });

  test.each([
    [{ clusterID: 'rome' }, 'clusterID: there is no such value'],
    [{ network: { podCidr: '10.0.0.0/8' } }, 'network.podCidr: there is no such value'],
    [{ network: { serviceCidr: '10.0.0.0' } }, 'network.serviceCidr: must be an IPv4 range'],
    [{ replicas: 0 }, 'replicas: '],
    [{ profile: 'solaris' }, 'profile: '],
    [{ metrics: 'yes' }, 'metrics: '],
    [{ apiServerUrl: 'http://x' }, 'apiServerUrl: must be https://HOST:PORT'],
    [{ clusterId: 'Rome' }, 'clusterId: must be a DNS-1123 label'],
    [JSON.parse('{"__proto__": 1}'), '__proto__: there is no such value'],
    ['rome', 'the file: '],
  ])('%j is refused by the name of its field', (values, message) => {
    expect(() => parseValues(values, 'values.yaml')).toThrow(message);
  });

  test('are set one by one, as helm does', () => {
    const set = (...settings: string[]) => withSettings({ image: 'a', network: { enabled: true } }, settings);
    expect(
      set('image=b', 'replicas=3', 'network.fullMasquerade=true', 'network.podCidrs={10.1.0.0/16, 10.2.0.0/16}'),
    ).toEqual({
      image: 'b',
      replicas: 3,
      network: { enabled: true, fullMasquerade: true, podCidrs: ['10.1.0.0/16', '10.2.0.0/16'] },
    });
    expect(set('labels.tier=gold', 'labels.tier=silver')).toMatchObject({ labels: { tier: 'silver' } });
    expect(() => set('image')).toThrow('accepted is NAME=VALUE');
    expect(() => parseValues(set('__proto__.x=1'), '--set')).toThrow('__proto__: there is no such value');
  });
});
