/** Every HTTP function by its route: what the local gateway serves and the OpenAPI document describes. */
import { handler as createApprovalRule } from './api/approval-rules/create.ts';
import { handler as deleteApprovalRule } from './api/approval-rules/delete.ts';
import { handler as listApprovalRules } from './api/approval-rules/list.ts';
import { handler as listAudit } from './api/audit/list.ts';
import { handler as changeCluster } from './api/clusters/change.ts';
import { handler as deleteCluster } from './api/clusters/delete.ts';
import { handler as getCluster } from './api/clusters/get.ts';
import { handler as listClusters } from './api/clusters/list.ts';
import { handler as getDirectoryEntry } from './api/directory/get.ts';
import { handler as listDirectory } from './api/directory/list.ts';
import { handler as publishCluster } from './api/directory/publish.ts';
import { handler as unpublishCluster } from './api/directory/unpublish.ts';
import { handler as changeEventTarget } from './api/event-targets/change.ts';
import { handler as createEventTarget } from './api/event-targets/create.ts';
import { handler as deleteEventTarget } from './api/event-targets/delete.ts';
import { handler as getTargetDelivery } from './api/event-targets/deliveries/get.ts';
import { handler as listTargetDeliveries } from './api/event-targets/deliveries/list.ts';
import { handler as replayTargetDelivery } from './api/event-targets/deliveries/replay.ts';
import { handler as getEventTarget } from './api/event-targets/get.ts';
import { handler as listEventTargets } from './api/event-targets/list.ts';
import { handler as replayEventTarget } from './api/event-targets/replay.ts';
import { handler as testEventTarget } from './api/event-targets/test.ts';
import { handler as listEvents } from './api/events/list.ts';
import { handler as getHealth } from './api/health.ts';
import { handler as createInvitation } from './api/invitations/create.ts';
import { handler as getInvitation } from './api/invitations/get.ts';
import { handler as listInvitations } from './api/invitations/list.ts';
import { handler as redeemInvitation } from './api/invitations/redeem.ts';
import { handler as revokeInvitation } from './api/invitations/revoke.ts';
import { handler as registerIssuer } from './api/issuers/create.ts';
import { handler as removeIssuer } from './api/issuers/delete.ts';
import { handler as listIssuers } from './api/issuers/list.ts';
import { handler as createJoinToken } from './api/join-tokens/create.ts';
import { handler as createKey } from './api/keys/create.ts';
import { handler as listKeys } from './api/keys/list.ts';
import { handler as revokeKey } from './api/keys/revoke.ts';
import { handler as rotateKey } from './api/keys/rotate.ts';
import { handler as changeMember } from './api/members/change.ts';
import { handler as addMember } from './api/members/create.ts';
import { handler as removeMember } from './api/members/delete.ts';
import { handler as getMember } from './api/members/get.ts';
import { handler as listMembers } from './api/members/list.ts';
import { handler as getOpenApi } from './api/openapi-document.ts';
import { handler as changePeering } from './api/peerings/change.ts';
import { handler as createPeering } from './api/peerings/create.ts';
import { handler as deletePeering } from './api/peerings/delete.ts';
import { handler as getPeering } from './api/peerings/get.ts';
import { handler as listPeerings } from './api/peerings/list.ts';
import { handler as getPeeringSamples } from './api/peerings/samples.ts';
import { handler as approveRequest } from './api/requests/approve.ts';
import { handler as createRequest } from './api/requests/create.ts';
import { handler as getRequest } from './api/requests/get.ts';
import { handler as listRequests } from './api/requests/list.ts';
import { handler as rejectRequest } from './api/requests/reject.ts';
import { handler as withdrawRequest } from './api/requests/withdraw.ts';
import { handler as renameTenant } from './api/tenant/change.ts';
import { handler as confirmDeletion } from './api/tenant/confirm-deletion.ts';
import { handler as exportTenant } from './api/tenant/export.ts';
import { handler as getOwnTenant } from './api/tenant/get.ts';
import { handler as requestDeletion } from './api/tenant/request-deletion.ts';
import { handler as changeTenant } from './api/tenants/change.ts';
import { handler as createTenant } from './api/tenants/create.ts';
import { handler as deleteTenant } from './api/tenants/delete.ts';
import { handler as getTenant } from './api/tenants/get.ts';
import { handler as listTenants } from './api/tenants/list.ts';
import { handler as getMe } from './api/tenants/me.ts';
import { handler as recoverTenant } from './api/tenants/recover.ts';
import { handler as changeWebhook } from './api/webhooks/change.ts';
import { handler as createWebhook } from './api/webhooks/create.ts';
import { handler as deleteWebhook } from './api/webhooks/delete.ts';
import { handler as getDelivery } from './api/webhooks/deliveries/get.ts';
import { handler as listDeliveries } from './api/webhooks/deliveries/list.ts';
import { handler as replayDelivery } from './api/webhooks/deliveries/replay.ts';
import { handler as getWebhook } from './api/webhooks/get.ts';
import { handler as listWebhooks } from './api/webhooks/list.ts';
import { handler as replayWebhook } from './api/webhooks/replay.ts';
import { handler as rotateWebhook } from './api/webhooks/rotate.ts';
import { handler as testWebhook } from './api/webhooks/test.ts';
import { handler as desired } from './channel/agent/desired.ts';
import { handler as enroll } from './channel/agent/enroll.ts';
import { handler as observed } from './channel/agent/observed.ts';
import type { HttpFunction } from './runtime/http.ts';

/** By the name that the operation has in the OpenAPI document. */
export const namedFunctions: Readonly<Record<string, HttpFunction>> = {
  listClusters,
  getCluster,
  changeCluster,
  deleteCluster,
  createJoinToken,
  createPeering,
  listPeerings,
  getPeering,
  getPeeringSamples,
  changePeering,
  deletePeering,
  createApprovalRule,
  deleteApprovalRule,
  listApprovalRules,
  getDirectoryEntry,
  listDirectory,
  publishCluster,
  unpublishCluster,
  createInvitation,
  getInvitation,
  listInvitations,
  redeemInvitation,
  revokeInvitation,
  approveRequest,
  createRequest,
  getRequest,
  listRequests,
  rejectRequest,
  withdrawRequest,
  listEvents,
  listAudit,
  createKey,
  listKeys,
  rotateKey,
  revokeKey,
  getMe,
  createTenant,
  listTenants,
  getTenant,
  changeTenant,
  deleteTenant,
  recoverTenant,
  getOwnTenant,
  renameTenant,
  exportTenant,
  requestDeletion,
  confirmDeletion,
  addMember,
  listMembers,
  getMember,
  changeMember,
  removeMember,
  registerIssuer,
  listIssuers,
  removeIssuer,
  createWebhook,
  listWebhooks,
  getWebhook,
  changeWebhook,
  deleteWebhook,
  rotateWebhook,
  testWebhook,
  replayWebhook,
  listDeliveries,
  getDelivery,
  replayDelivery,
  createEventTarget,
  listEventTargets,
  getEventTarget,
  changeEventTarget,
  deleteEventTarget,
  testEventTarget,
  replayEventTarget,
  listTargetDeliveries,
  getTargetDelivery,
  replayTargetDelivery,
  getHealth,
  getOpenApi,
  enroll,
  observed,
  desired,
};

export const httpFunctions: readonly HttpFunction[] = Object.values(namedFunctions);
