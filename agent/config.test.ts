import { expect, test } from 'vitest';
import { loadAgentConfig } from './config.ts';

const least = { ISTHMUS_CLUSTER_ID: 'milan', ISTHMUS_API_SERVER_URL: 'https://192.0.2.1:6443/' };

test('the labels of a cluster are read as `isthmus join --labels` writes them', () => {
  const text = 'topology.liqo.io/region=south,tier=';
  expect(loadAgentConfig({ ...least, ISTHMUS_CLUSTER_LABELS: text }).clusterLabels).toEqual({
    'topology.liqo.io/region': 'south',
    tier: '',
  });
  expect(loadAgentConfig(least).clusterLabels).toEqual({});
});

test.each(['south', '=south', 'a=b,', 'a=b=c', 'a=b, c=d'])(
  'labels %j are refused by name, with what is accepted',
  (text) => {
    expect(() => loadAgentConfig({ ...least, ISTHMUS_CLUSTER_LABELS: text })).toThrow(
      /ISTHMUS_CLUSTER_LABELS: KEY=VALUE,… is accepted/,
    );
  },
);
