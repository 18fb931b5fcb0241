/** The Quota that holds a consumer's slice to what it was granted. */
import { sliceUser } from '#agent/model/peer-user.ts';
import type { Applied } from '#kube/model/types.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { resourceTexts } from '#shared/domain/quantity.ts';
import type { LimitsEnforcement, ResourceList } from '#shared/schema/definition/fields.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';

export interface QuotaTerms {
  readonly consumer: string;
  readonly resources: ResourceList;
  readonly cordoned: boolean;
  readonly limitsEnforcement: LimitsEnforcement;
}

export function buildQuota(slice: ResourceSlice, terms: QuotaTerms): Applied<Quota> {
  const user = sliceUser(slice.metadata.name, terms.consumer);
  return {
    apiVersion: apiVersionOf(quotas),
    kind: quotas.kind,
    metadata: {
      name: user,
      namespace: slice.metadata.namespace ?? '',
      labels: {
        [label.managed]: 'true',
        [label.remoteClusterId]: terms.consumer,
        [label.resourceSliceName]: slice.metadata.name,
      },
      ownerReferences: [ownerOf(resourceSlices, slice)],
    },
    spec: {
      user,
      limitsEnforcement: terms.limitsEnforcement,
      resources: resourceTexts(terms.resources),
      ...(terms.cordoned ? { cordoned: true } : {}),
    },
  };
}
