/** What crosses tenants on purpose, by operation of the API document, and what the isolation run leaves out: each with its reason. */

/** Reads or writes something of another tenant because that tenant agreed, offered or was asked. */
export const acrossByDesign: Readonly<Record<string, string>> = {
  getDirectory: 'lists what tenants chose to publish',
  getDirectoryTenantCluster: 'reads what a tenant chose to publish',
  postDirectory: 'publishes: everybody may read it',
  postRequests: 'lies in the inbox of the tenant that is asked',
  getRequests: 'shows who asks and who is asked',
  getRequestsRequest: 'shows who asks and who is asked',
  deleteRequestsRequest: 'taken back from the inbox of the other tenant',
  postRequestsRequestReject: 'the answer reaches the other tenant',
  postInvitationsRedeem: 'uses what another tenant gave',
};

export const notPerformed: Readonly<Record<string, string>> = {
  getOpenapiJson: 'the same for everybody',
  postRequestsRequestApprove:
    'makes a peering of two tenants, of which each then sees what docs say: control/peerings/across.test.ts is about those',
  getHealth: 'the same for everybody',
};
