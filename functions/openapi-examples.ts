/** A body for each operation that has one, as it stands in the OpenAPI document. A test holds each against the schema of its route. */

const capacity = { cpu: '4', memory: '8Gi' };

export const bodyExamples: Readonly<Record<string, object>> = {
  changeCluster: { labels: { env: 'production' } },
  createJoinToken: { cluster: 'rome' },
  createPeering: { consumer: 'rome', provider: 'milan', resources: capacity, labels: { team: 'shop' } },
  changePeering: { labels: { team: 'shop' } },
  createApprovalRule: { name: 'partners', tenants: ['globex'], maxResources: capacity },
  publishCluster: { cluster: 'milan', region: 'eu-south', capacity, description: 'spare nodes at night' },
  createInvitation: { cluster: 'milan', limits: capacity, expiresInSeconds: 86_400 },
  redeemInvitation: { code: 'CODE', consumer: 'rome', resources: { cpu: '2' } },
  approveRequest: { reason: 'agreed by mail' },
  createRequest: { consumer: 'rome', providerTenant: 'globex', provider: 'milan', resources: capacity },
  rejectRequest: { reason: 'no capacity before May' },
  createKey: { name: 'portal', role: 'operator', expiresInSeconds: 2_592_000 },
  rotateKey: { overlapSeconds: 3_600 },
  createTenant: { name: 'acme', displayName: 'Acme Ltd.' },
  changeTenant: { limits: { requestsPerMinute: 600 } },
  recoverTenant: { reason: 'ticket 4711' },
  renameTenant: { displayName: 'Acme Ltd.' },
  confirmDeletion: { name: 'acme', confirmation: 'CONFIRMATION' },
  addMember: { email: 'ann@example.com', role: 'operator' },
  changeMember: { role: 'admin' },
  registerIssuer: { url: 'https://login.example.com', audience: 'isthmus' },
  createWebhook: { url: 'https://example.com/isthmus', types: ['peering.phase-changed'] },
  changeWebhook: { enabled: true },
  rotateWebhook: { overlapSeconds: 3_600 },
  replayWebhook: {},
  createEventTarget: {
    arn: 'arn:aws:sqs:eu-central-1:123456789012:isthmus',
    roleArn: 'arn:aws:iam::123456789012:role/isthmus-events-acme',
  },
  changeEventTarget: { enabled: true },
  replayEventTarget: {},
};
