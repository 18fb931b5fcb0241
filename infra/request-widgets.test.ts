/** The dashboard of the hosted broker, offline: it asks for the very metrics that the access log embeds. */
import { expect, test } from 'vitest';
import { callerKinds, metricNamespace, requestMetric } from '#shared/metrics/embedded.ts';
import { synthesise } from './testing/synthesised.ts';
import { ofType, properties } from './testing/templates.ts';

interface Widget {
  readonly properties: { readonly title?: string; readonly metrics?: readonly (readonly unknown[])[] };
}

test('shows each embedded metric for each kind of caller, by the name of the table of its stage', () => {
  const stage = synthesise().production ?? expect.fail('production');
  const [dashboard] = ofType('AWS::CloudWatch::Dashboard', stage).map(properties);
  const [table] = ofType('AWS::DynamoDB::GlobalTable', stage).map(properties);
  const body = dashboard?.DashboardBody as string | { 'Fn::Join': [string, readonly unknown[]] };
  // References to the Region and the like stand between the parts.
  const parts = typeof body === 'string' ? [body] : body['Fn::Join'][1];
  const text = parts.map((part) => (typeof part === 'string' ? part : 'x')).join('');
  const { widgets } = JSON.parse(text) as { widgets: readonly Widget[] };
  const ours = widgets
    .flatMap(({ properties: { metrics = [] } }) => metrics)
    .filter(([first]) => first === metricNamespace);
  const asked = new Set(ours.map(([, name, ...dimensions]) => [name, ...dimensions.slice(0, 4)].join(' ')));
  const wanted = Object.values(requestMetric).flatMap((name) =>
    callerKinds.map((caller) => `${name} Broker ${table?.TableName} Caller ${caller}`),
  );
  expect(wanted.filter((one) => !asked.has(one))).toEqual([]);
});
