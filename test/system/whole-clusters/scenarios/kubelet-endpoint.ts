/** The port that a virtual node answers on: its authorization, and the addresses by which pods and nodes of the consumer reach it. */
import { beforeAll, describe, expect, test } from 'vitest';
import { nodes } from '#shared/domain/core-kinds.ts';
import { type ClientCertificate, mintCertificate } from '../certificates.ts';
import { consumer, provider, reported, type Stage } from '../stage.ts';

/** Runs in a node's namespaces, where the endpoint is reachable; certificates come by environment. */
const client = `
const { cert, key, host, port, path } = JSON.parse(process.env.REQUEST);
require('node:https').get({ host, port, path, cert, key, rejectUnauthorized: false }, (answer) => {
  let body = '';
  answer.on('data', (chunk) => { body += chunk; });
  answer.on('end', () => console.log(JSON.stringify({ status: answer.statusCode, body })));
}).on('error', (error) => console.log(JSON.stringify({ status: 0, body: error.message })));
`;

interface Answer {
  readonly status: number;
  readonly body: string;
}

export function kubeletEndpoint(on: () => Stage): void {
  describe('the kubelet endpoint of a virtual node', () => {
    let place: { readonly host: string; readonly port: number };
    beforeAll(async () => {
      const node = await on().api(consumer).get(nodes, { name: provider });
      place = {
        host: node?.status?.addresses?.[0]?.address ?? '',
        port: node?.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0,
      };
    });

    async function ask(path: string, certificate: ClientCertificate | undefined): Promise<Answer> {
      const [node] = on().world.cluster(consumer).nodes;
      const env = { REQUEST: JSON.stringify({ ...place, path, ...certificate }) };
      return JSON.parse((await node?.exec(process.execPath, ['-e', client], { env })) ?? '') as Answer;
    }

    test('refuses callers without a client certificate', async () => {
      expect(await ask('/pods', undefined)).toMatchObject({
        status: 401,
        body: expect.stringContaining('no client certificate and no bearer token was presented'),
      });
    });

    test('refuses callers with a certificate of another cluster', async () => {
      const foreign = await mintCertificate(on().api(provider), 'somebody');
      for (const path of ['/pods', '/containerLogs/abroad/any/main', '/exec/abroad/any/main?command=env&output=1']) {
        const answer = await ask(path, foreign);
        expect(answer.status).toBe(401);
        expect(answer.body).toMatch(/certificate is not accepted.*client-ca-file/);
      }
    });

    test('refuses a user of this cluster without rights, naming what is missing', async () => {
      const nobody = await mintCertificate(on().api(consumer), 'nobody-special');
      const answer = await ask('/containerLogs/abroad/any/main', nobody);
      expect(answer.status).toBe(403);
      expect(answer.body).toMatch(/user "nobody-special" may not get nodes\/\w+ of node milan; bind a ClusterRole/);
      expect((await ask('/exec/abroad/any/main?command=env&output=1', nobody)).status).toBe(403);
    });

    test('answers the API server', async () => {
      const raw = await on().kubectl(consumer, ['get', '--raw', `/api/v1/nodes/${provider}/proxy/pods`]);
      expect(raw.code, reported(raw)).toBe(0);
      expect(raw.stdout).toContain('"any"');
    });
  });
}
