import { describe, expect, test } from 'vitest';
import { filesOf } from './generate-peering.ts';
import { peeringManifests } from './manifests.ts';

const halves = peeringManifests({
  consumer: { id: 'rome', podCidrs: ['10.200.0.0/16'], externalCidrs: ['10.70.0.0/16'] },
  provider: { id: 'milan', podCidrs: ['10.201.0.0/16'], externalCidrs: ['10.71.0.0/16'] },
  link: {
    server: 'provider',
    serviceType: 'NodePort',
    addresses: ['203.0.113.21'],
    nodePort: 30_742,
    mtu: 1_340,
    keys: {
      consumer: { privateKey: '<WIREGUARD_PRIVATE_KEY_OF_ROME>', publicKey: '<WIREGUARD_PUBLIC_KEY_OF_ROME>' },
      provider: { privateKey: '<WIREGUARD_PRIVATE_KEY_OF_MILAN>', publicKey: '<WIREGUARD_PUBLIC_KEY_OF_MILAN>' },
    },
  },
  kubeconfig: '<KUBECONFIG_OF_ROME_AT_MILAN>',
  user: 'rome',
  slice: { name: 'milan', class: 'default', resources: { cpu: '20', memory: '128Gi' } },
});

describe('examples/gitops is what `isthmus generate peering` writes, but for the keys:', () => {
  test.each([
    ['rome', halves.consumer],
    ['milan', halves.provider],
  ] as const)('%s', async (id, half) => {
    for (const [file, text] of Object.entries(filesOf(half)))
      await expect(text).toMatchFileSnapshot(`../../examples/gitops/${id}/${file}`);
  });
});
