/** What stands behind the broker's part of an invitation's code. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { KubeClient } from '#cli/cluster/open.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { codeWith, readCode, takeVoucher } from './invitation-code.ts';

const key = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' }).toString('base64');

describe('the code of an invitation', () => {
  test('is taken apart as it was put together', () => {
    expect(readCode(` ${codeWith('isi_x', { tenant: 'bolt', key })}\n`)).toEqual({
      code: 'isi_x',
      voucher: { tenant: 'bolt', key },
    });
    expect(readCode('isi_x')).toEqual({ code: 'isi_x' });
  });

  test.each(['isi_x~bolt', `isi_x~bolt~${key}~more`, `isi_x~../bolt~${key}`, 'isi_x~bolt~AAAA'])(
    'is refused with a damaged rest: %s',
    (text) => expect(() => readCode(text)).toThrow('damaged'),
  );
});

describe('a cluster that takes a voucher', () => {
  const written: KubeObject[] = [];
  const kube = {
    get: async (type: { kind: string }) =>
      type.kind === 'BrokerLink' ? { spec: { tenant: 'acme', clusterId: 'rome' } } : undefined,
    apply: async (_type: unknown, object: KubeObject) => written.push(object),
  } as unknown as KubeClient;

  test('believes the key for the inviting tenant, and for no other', async () => {
    await takeVoucher(kube, 'rome', { tenant: 'bolt', key }, 'bolt');
    expect(written).toMatchObject([{ kind: 'PeeringLock', metadata: { name: 'bolt' }, spec: { keys: [{ key }] } }]);
  });

  test('refuses one for its own tenant, and one in the hands of another cluster', async () => {
    await expect(takeVoucher(kube, 'rome', { tenant: 'acme', key }, 'acme')).rejects.toMatchObject({
      code: 'invalid_input',
    });
    await expect(takeVoucher(kube, 'turin', { tenant: 'bolt', key }, 'bolt')).rejects.toMatchObject({
      code: 'invalid_input',
    });
    expect(written).toHaveLength(1);
  });

  test('refuses one that a third tenant put into a code of its own', async () => {
    for (const inviter of ['thief', undefined])
      await expect(takeVoucher(kube, 'rome', { tenant: 'bolt', key }, inviter)).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringContaining('its lock key is not taken'),
      });
    expect(written).toHaveLength(1);
  });

  test('refuses one that names a tenant which it trusts by another key', async () => {
    const trusting = {
      ...kube,
      get: async (type: { kind: string }) =>
        type.kind === 'BrokerLink'
          ? { spec: { tenant: 'acme', clusterId: 'rome' } }
          : { spec: { keys: [{ key: 'of-the-real-bolt' }, { key }] } },
    } as unknown as KubeClient;
    const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
    await expect(takeVoucher(trusting, 'rome', { tenant: 'bolt', key: other }, 'bolt')).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('another lock key'),
    });
    expect(written).toHaveLength(1);
    await takeVoucher(trusting, 'rome', { tenant: 'bolt', key }, 'bolt');
    expect(written).toHaveLength(2);
  });
});
