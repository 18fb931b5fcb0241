/** The access log of the hosted broker, written by the real log and a real handler, as CloudWatch reads it: Embedded Metric Format. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { handler as listClusters } from '#functions/api/clusters/list.ts';
import { handler as listEvents } from '#functions/api/events/list.ts';
import { toGatewayEvent } from '#functions/local/gateway-event.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { createJsonLog } from './json-log.ts';

/** The parts of the format's schema that are required, by Amazon's specification. */
const Line = z.looseObject({
  _aws: z.strictObject({
    Timestamp: z.int().positive(),
    CloudWatchMetrics: z
      .array(
        z.strictObject({
          Namespace: z.string().min(1).max(1_024),
          Dimensions: z.array(z.array(z.string().min(1).max(250)).max(30)),
          Metrics: z
            .array(z.strictObject({ Name: z.string().min(1), Unit: z.enum(['Milliseconds', 'Count']) }))
            .max(100),
        }),
      )
      .min(1),
  }),
});

type Handler = typeof listClusters;

async function lineOf(handler: Handler, path: string, key: 'good' | 'bad', metricsBroker?: string): Promise<unknown> {
  const written: string[] = [];
  const log = createJsonLog('info', { write: (line) => void written.push(line) });
  const fixture = await createApiFixture();
  const admin = await fixture.tenant('acme');
  const { clock } = fixture;
  const changed = async (withinMs: number): Promise<boolean> => {
    clock.advance(withinMs);
    return false;
  };
  const composition = {
    ...fixture.composition,
    log,
    listen: () => ({ changed, end: () => undefined }),
    ...(metricsBroker !== undefined && { metricsBroker }),
  };
  const route = `GET ${path.split('?')[0]}`;
  const request = {
    method: 'GET',
    url: path,
    headers: { authorization: `Bearer ${key === 'good' ? admin : 'isk_acme_wrong'}` },
    sourceIp: '192.0.2.1',
    body: Buffer.alloc(0),
    requestId: 'r',
    receivedAt: fixture.clock.now(),
  };
  const event = toGatewayEvent(request, { routeKey: route, pathParameters: {} });
  await handler(event, invocationContext(composition, route, 'r'));
  expect(written).toHaveLength(1);
  return JSON.parse(written[0] ?? '');
}

/** What CloudWatch makes of a line: the value of each metric, by its name and the values of its dimensions. */
function metricsIn(line: unknown): Record<string, unknown> {
  const parsed = Line.parse(line);
  return Object.fromEntries(
    parsed._aws.CloudWatchMetrics.flatMap(({ Dimensions, Metrics }) =>
      Metrics.flatMap(({ Name }) =>
        Dimensions.map((names) => [[Name, ...names.map((name) => parsed[name])].join(' '), parsed[Name]]),
      ),
    ),
  );
}

test('the duration of a request is counted for its kind of caller and for all callers together', async () => {
  expect(metricsIn(await lineOf(listClusters, '/v1/clusters', 'good', 'isthmus-dev'))).toEqual({
    'RequestDuration isthmus-dev user': expect.any(Number),
    'RequestDuration isthmus-dev': expect.any(Number),
  });
});

test('a refusal is counted, of a caller that is not known', async () => {
  expect(metricsIn(await lineOf(listClusters, '/v1/clusters', 'bad', 'isthmus-dev'))).toEqual({
    'RequestDuration isthmus-dev unknown': expect.any(Number),
    'RequestDuration isthmus-dev': expect.any(Number),
    'Refused isthmus-dev unknown': 1,
  });
});

test('a long poll has no duration that would say anything', async () => {
  const line = await lineOf(listEvents as Handler, '/v1/events?subject=none&wait=1', 'good', 'isthmus-dev');
  expect(line).toMatchObject({ waited: true, status: 200 });
  expect(line).not.toHaveProperty('_aws');
});

test('a broker of your own embeds none: it has /metrics', async () => {
  expect(await lineOf(listClusters, '/v1/clusters', 'good')).not.toHaveProperty('_aws');
});
