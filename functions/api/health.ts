/** GET /v1/health */
import { http } from '#functions/runtime/http.ts';
import { Health } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/health',
    summary: 'Is the broker up',
    auth: 'none',
    answers: { 200: { description: 'It is.', body: Health } },
  },
  async ({ version }) => ({ body: { status: 'ok', version } }),
);
