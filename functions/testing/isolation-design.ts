/** What crosses tenants on purpose, by operation of the API document, and what the isolation run leaves out: each with its reason. */

/** Reads or writes something of another tenant because that tenant agreed, offered or was asked. */
export const acrossByDesign: Readonly<Record<string, string>> = {
  listDirectory: 'lists what tenants chose to publish',
  getDirectoryEntry: 'reads what a tenant chose to publish',
  publishCluster: 'publishes: everybody may read it',
  createRequest: 'lies in the inbox of the tenant that is asked',
  listRequests: 'shows the asking and the asked tenant',
  getRequest: 'shows the asking and the asked tenant',
  withdrawRequest: 'taken back from the inbox of the other tenant',
  rejectRequest: 'the answer reaches the other tenant',
  redeemInvitation: 'uses what another tenant gave',
};

export const notPerformed: Readonly<Record<string, string>> = {
  getOpenApi: 'the same for everybody',
  approveRequest:
    'makes a peering of two tenants, of which each then sees what docs say: control/peerings/cross-tenant/copies.test.ts is about those',
  getHealth: 'the same for everybody',
};
