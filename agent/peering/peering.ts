/** All controllers of authentication and resource negotiation; every cluster runs all of them, being consumer and provider at once. */
import type { Controller } from '#kube/model/types.ts';
import { createSignerProbeController } from './credentials/signer-probe.ts';
import { createForeignClusterController } from './foreign-cluster/controller.ts';
import { createIdentityController } from './identity/controller.ts';
import { createSliceIdentityController } from './identity/slice-identity-controller.ts';
import { createKeysController } from './keys/controller.ts';
import { createManifestFaultsController } from './manifest-faults/controller.ts';
import type { PeeringDeps } from './model/deps.ts';
import { createNonceCreatorController, createNonceSignerController } from './nonce/controllers.ts';
import { createLocalRenewController, createRemoteRenewController } from './renewal/controllers.ts';
import { createRecoveryController } from './renewal/recovery.ts';
import { createReplicatorController } from './replication/controller.ts';
import { createNamespaceRightsController } from './rights/controller.ts';
import { createLocalSliceController } from './slices/consumer-slice-controller.ts';
import { createRemoteSliceController } from './slices/provider-slice-controller.ts';
import { createTenantController } from './tenant/controller.ts';

export const createPeeringControllers = (deps: PeeringDeps): Controller[] =>
  [
    createKeysController,
    createNamespaceRightsController,
    createNonceCreatorController,
    createNonceSignerController,
    createSignerProbeController,
    createTenantController,
    createIdentityController,
    createLocalSliceController,
    createReplicatorController,
    createRemoteSliceController,
    createSliceIdentityController,
    createLocalRenewController,
    createRemoteRenewController,
    createRecoveryController,
    createForeignClusterController,
    createManifestFaultsController,
  ].map((create) => create(deps));
