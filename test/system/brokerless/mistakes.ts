/** Two mistakes in manifests of Liqo's guide, on two real clusters: what each end says about them, and how soon. */
import { describe, expect, test } from 'vitest';
import { createWireGuardKeys } from '#agent/pki/wireguard-keys.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { linkedAs } from '../rounds/linked.ts';
import { isAsBefore, isPeered } from '../rounds/rounds.ts';
import type { Traces } from '../rounds/traces.ts';
import { type ClusterName, clusterNames, patience } from '../whole-clusters/stage.ts';
import type { Ground } from './ground.ts';
import { applyGuide, deleteGuide } from './guide.ts';

/** 5 s are asked of what people wait for on a machine of its own; this one may be shared. */
const soon = { withinMs: 20_000, everyMs: 50 } as const;

interface Compared {
  readonly ground: Ground;
  /** Of the kernels without a link, and with the one of the same manifests in another order. */
  readonly unlinked: Traces;
  readonly linked: Traces;
}

/** Of clusters that are not peered; they are not afterwards. */
export function mistakes(on: () => Compared): void {
  const linkThat = async (cluster: ClusterName, value: string) =>
    (await on().ground.stage.api(cluster).list(networkKinds.connections)).find(({ status }) => status?.value === value);

  const conditionOf = async (cluster: ClusterName): Promise<string | undefined> => {
    const [link] = await on().ground.stage.api(cluster).list(networkKinds.connections);
    return link?.status?.conditions?.find(({ type }) => type === 'Handshake')?.message;
  };

  describe('a PublicKey of another cluster than the peer', () => {
    const key = { namespace: 'liqo-tenant-milan', name: 'gw-publickey' };
    const set = (publicKey: string) =>
      on().ground.stage.api('rome').mergePatch(networkKinds.publicKeys, key, { spec: { publicKey } });
    let right = '';

    test('is found at neither end, and both say soon after the 10 s of silence what they go by', async () => {
      const { stage, guide } = on().ground;
      await applyGuide(stage, guide, 4);
      right = (await stage.api('rome').get(networkKinds.publicKeys, key))?.spec.publicKey ?? '';
      const stranger = Buffer.from(createWireGuardKeys().publicKey).toString('base64');
      await set(stranger);
      for (const [cluster, other] of [
        ['rome', 'milan'],
        ['milan', 'rome'],
      ] as const) {
        const silent = await eventually('the link to count as broken', () => linkThat(cluster, 'Error'), patience);
        const output = await eventually(`${cluster} to say it`, () => conditionOf(cluster), soon);
        expect(output).toContain(`no handshake with ${other} in 10 s`);
        expect(output).toContain(silent.spec.type === 'Client' ? stranger : right);
        expect(output).toContain('UDP');
      }
    });

    test('and once it is right, the link comes up and the word is taken back', async () => {
      await set(right);
      await isPeered(on().ground);
      for (const cluster of clusterNames)
        await eventually('nothing to be said', async () => (await conditionOf(cluster)) === undefined, patience);
    });
  });

  describe('a range in a Configuration that the peer does not have', () => {
    const type = networkKinds.configurations;
    const output = async (cluster: ClusterName): Promise<string | undefined> => {
      const [configuration] = await on().ground.stage.api(cluster).list(type);
      return configuration?.status?.conditions?.find((one) => one.type === 'PeerRanges')?.message;
    };
    const write = async (pod: readonly string[] | undefined): Promise<readonly string[] | undefined> => {
      const api = on().ground.stage.api('rome');
      const [configuration] = await api.list(type);
      if (configuration === undefined) throw new Error('rome has no Configuration');
      await api.mergePatch(type, refOf(configuration), { spec: { remote: { cidr: { pod } } } });
      return configuration.spec.remote.cidr.pod;
    };

    test('is named on it soon, with the one that it has, and on no other; and once it is right, nothing is said', async () => {
      for (const cluster of clusterNames)
        await eventually('nothing to be said', async () => (await output(cluster)) === undefined, soon);
      const right = await write(['10.177.0.0/16']);
      const began = performance.now();
      expect(await eventually('rome to say it', () => output('rome'), soon)).toContain(
        `spec.remote.cidr.pod is 10.177.0.0/16, the peer has ${right?.join(', ')}`,
      );
      console.log(`a range that the peer does not have: said after ${Math.round(performance.now() - began)} ms`);
      expect(await output('milan')).toBeUndefined();
      await write(right);
      await eventually('nothing to be said', async () => (await output('rome')) === undefined, soon);
      await isPeered(on().ground);
      // Another order than the first one, and two mistakes on the way: the kernels are the same.
      await linkedAs(on().ground, on().linked);
      await deleteGuide(on().ground.stage, on().ground.guide, 4);
      await isAsBefore(on().ground, on().unlinked);
    });
  });
}
