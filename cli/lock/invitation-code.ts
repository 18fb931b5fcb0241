/** The code of an invitation as people hand it on: behind the broker's part, whose lock key vouches for the cluster. The broker never sees that part. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { changeLock, linkOf, lockOf, withKey } from './cluster-lock.ts';
import { isLockKeyText } from './lock-key.ts';

interface Voucher {
  /** The inviting account. */
  readonly tenant: string;
  /** base64 of the SubjectPublicKeyInfo of its administrator's lock key. */
  readonly key: string;
}

export const codeWith = (code: string, { tenant, key }: Voucher): string => `${code}~${tenant}~${key}`;

/** Codes without a voucher are good at the broker as well. Fails with `invalid_input` for a voucher that is none. */
export function readCode(text: string): { readonly code: string; readonly voucher?: Voucher } {
  const [code = '', tenant, key, ...rest] = text.trim().split('~');
  if (tenant === undefined) return { code };
  if (rest.length > 0 || !/^[-a-z0-9]{1,63}$/.test(tenant) || !isLockKeyText(key ?? '')) {
    throw new AppError('invalid_input', 'the code is damaged behind its first ~', {
      detail: { field: 'code', remedy: 'have it sent once more, or use the part before the first ~ alone' },
    });
  }
  return { code, voucher: { tenant, key: key ?? '' } };
}

/** Fails with `invalid_input` where `takeVoucher` would; writes nothing. */
export async function checkVoucher(kube: KubeClient, consumer: string, { tenant, key }: Voucher): Promise<void> {
  const own = await linkOf(kube);
  if (own.clusterId !== consumer) {
    throw new AppError('invalid_input', `the kubeconfig is that of ${own.clusterId}, not of ${consumer}`, {
      detail: { field: '--kubeconfig' },
    });
  }
  // A stranger would speak for this cluster's own tenant by it.
  if (own.tenant === tenant) {
    throw new AppError(
      'invalid_input',
      `the code vouches for clusters of ${tenant}, which is the tenant of ${consumer}`,
      {
        detail: { field: 'code', remedy: 'ask the inviting tenant for its name, and for a new code' },
      },
    );
  }
  const { keys } = await lockOf(kube, tenant);
  // The code names a tenant, and any tenant may write a code: it would speak for clusters of one that is trusted already.
  if (keys.length > 0 && !keys.some((known) => known.key === key)) {
    throw new AppError(
      'invalid_input',
      `${consumer} trusts tenant ${tenant} by another lock key than the one in the code`,
      {
        detail: {
          field: 'code',
          remedy: `ask ${tenant}, and not by way of the broker or the sender of the code, whether ${key} is theirs; then: isthmus lock trust ${key} --tenant ${tenant} --kubeconfig FILE`,
        },
      },
    );
  }
}

/**
 * Lets the cluster trust the clusters that the inviting tenant's lock key signs. `inviter` is the provider's tenant, as the broker says once it has taken
 * the code: a code that vouches for another one was put together by a third party.
 */
export async function takeVoucher(
  kube: KubeClient,
  consumer: string,
  voucher: Voucher,
  inviter: string | undefined,
): Promise<void> {
  const { tenant, key } = voucher;
  if (inviter !== tenant) {
    throw new AppError(
      'invalid_input',
      `the code vouches for clusters of ${tenant}, and the broker says that tenant ${inviter ?? 'of the same name'} invites; its lock key is not taken`,
      {
        detail: {
          field: 'code',
          value: tenant,
          remedy: `end the peering with isthmus unpeer, and ask the inviting tenant for its name and a new code`,
        },
      },
    );
  }
  await checkVoucher(kube, consumer, voucher);
  await changeLock(kube, tenant, (spec) => withKey(spec, key, `invitation of ${tenant}`));
}
