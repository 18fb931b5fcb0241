/** All controllers of authentication and resource negotiation; every cluster runs all of them, being consumer and provider at once. */
import type { Controller } from '#kube/model/types.ts';
import { createForeignClusterController } from './foreign-cluster/index.ts';
import { createIdentityController } from './identity/index.ts';
import { createKeysController } from './keys/index.ts';
import { createLocalSliceController } from './local-slice/index.ts';
import { createManifestFaultsController } from './manifest-faults/index.ts';
import { createNonceCreatorController, createNonceSignerController } from './nonce/index.ts';
import type { PeeringDeps } from './peering-deps.ts';
import { createQuotaController } from './quota/index.ts';
import { createQuotaUsageController } from './quota/usage.ts';
import { createRemoteSliceController } from './remote-slice/index.ts';
import { createLocalRenewController, createRemoteRenewController } from './renew/index.ts';
import { createRecoveryController } from './renew/recovery.ts';
import { createReplicatorController } from './replicator/index.ts';
import { createSliceIdentityController } from './slice-identity/index.ts';
import { createTenantController } from './tenant/index.ts';
import { createVirtualNodeCreatorController } from './virtual-node-creator/index.ts';

export const createPeeringControllers = (deps: PeeringDeps): Controller[] =>
  [
    createKeysController,
    createNonceCreatorController,
    createNonceSignerController,
    createTenantController,
    createIdentityController,
    createLocalSliceController,
    createReplicatorController,
    createRemoteSliceController,
    createQuotaController,
    createQuotaUsageController,
    createSliceIdentityController,
    createVirtualNodeCreatorController,
    createLocalRenewController,
    createRemoteRenewController,
    createRecoveryController,
    createForeignClusterController,
    createManifestFaultsController,
  ].map((create) => create(deps));
