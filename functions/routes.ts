/** Every HTTP function by its route: what the local gateway serves and the OpenAPI document describes. */
import { handler as listAudit } from './api/audit/list.ts';
import { handler as deleteCluster } from './api/clusters/delete.ts';
import { handler as getCluster } from './api/clusters/get.ts';
import { handler as listClusters } from './api/clusters/list.ts';
import { handler as listEvents } from './api/events/list.ts';
import { handler as health } from './api/health.ts';
import { handler as createJoinToken } from './api/join-tokens/create.ts';
import { handler as createKey } from './api/keys/create.ts';
import { handler as listKeys } from './api/keys/list.ts';
import { handler as revokeKey } from './api/keys/revoke.ts';
import { handler as rotateKey } from './api/keys/rotate.ts';
import { handler as openApi } from './api/openapi-document.ts';
import { handler as createPeering } from './api/peerings/create.ts';
import { handler as deletePeering } from './api/peerings/delete.ts';
import { handler as getPeering } from './api/peerings/get.ts';
import { handler as listPeerings } from './api/peerings/list.ts';
import { handler as me } from './api/tenants/me.ts';
import { handler as ack } from './channel/agent/ack.ts';
import { handler as desired } from './channel/agent/desired.ts';
import { handler as enroll } from './channel/agent/enroll.ts';
import { handler as observed } from './channel/agent/observed.ts';
import type { HttpFunction } from './runtime/http.ts';

export const httpFunctions: readonly HttpFunction[] = [
  listClusters,
  getCluster,
  deleteCluster,
  createJoinToken,
  createPeering,
  listPeerings,
  getPeering,
  deletePeering,
  listEvents,
  listAudit,
  createKey,
  listKeys,
  rotateKey,
  revokeKey,
  me,
  health,
  openApi,
  enroll,
  observed,
  desired,
  ack,
];
