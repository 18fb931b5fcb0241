/** POST /v1/issuers */
import { http } from '#functions/runtime/http.ts';
import { given, issuerResource } from '#functions/runtime/present-tenancy.ts';
import { Issuer, NewIssuer } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/issuers',
    summary: 'Register an identity provider',
    description:
      'Its tokens are accepted beside the header isthmus-tenant: of members, and of subjects to which its role claim gives a role. HTTPS and public addresses only; its keys are fetched now, to see that they can be.',
    auth: 'key',
    permission: 'issuers:write',
    body: NewIssuer,
    refusals: ['url_refused', 'issuer_unusable', 'fields_conflict', 'already_exists', 'limit_reached'],
    answers: { 201: { description: 'The issuer.', body: Issuer } },
  },
  async ({ control, caller, body, signal }) => {
    const { claims, ...rest } = given(body);
    const input = { ...rest, ...(claims && { claims: given(claims) }) };
    return { status: 201, body: issuerResource(await control.tenants.issuers.register(caller, input, signal)) };
  },
);
