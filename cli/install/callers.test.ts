/** From where the webhooks may be called: what is applied, found again by an update, and refused. */
import { expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { callerManifests, callersOf } from './caller-manifests.ts';
import { settleCallers } from './callers.ts';
import { controllerLabels, objectsOfAgent } from './manifests.ts';
import { parseValues } from './values.ts';

const options = { clusterId: 'rome', image: 'i', apiServerUrl: 'https://192.0.2.1:6443', replicas: 1 };
const policiesIn = (webhookCallers?: readonly string[]) =>
  objectsOfAgent({ ...options, ...(webhookCallers && { webhookCallers }) }).filter(
    ({ kind }) => kind === 'NetworkPolicy',
  );

/** Whether any of the policies, which add up, lets a packet to the controllers in. */
function enters(
  callers: readonly string[],
  port: number | string,
  from: { cidr?: string; namespace?: string },
): boolean {
  const policies = callerManifests(callers, controllerLabels);
  if (policies.length === 0) return true;
  return policies.some(({ spec }) =>
    spec.ingress.some(
      (rule) =>
        (rule.ports === undefined || rule.ports.some((one) => one.port === port)) &&
        (rule.from === undefined ||
          rule.from.some((peer) => {
            const text = JSON.stringify(peer);
            return [from.cidr, from.namespace].some((one) => one !== undefined && text.includes(`"${one}"`));
          })),
    ),
  );
}

const nodes = '192.0.2.0/24';
test('without ranges there is no policy, and everybody may call', () => {
  expect(policiesIn()).toEqual([]);
  expect(policiesIn([])).toEqual([]);
  expect(enters([], 9443, { namespace: 'guest' })).toBe(true);
});

test.each([
  [9443, { cidr: nodes }, true],
  [11_250, { cidr: nodes }, true],
  [9443, { namespace: 'kube-system' }, true],
  [9443, { namespace: 'guest' }, false],
  [11_250, { namespace: 'guest' }, false],
  [9443, { cidr: '198.51.100.0/24' }, false],
  ['health', { namespace: 'guest' }, true],
  ['metrics', { namespace: 'monitoring' }, true],
  [8118, { cidr: '198.51.100.0/24' }, true],
  [8119, { cidr: '198.51.100.0/24' }, true],
])('with a range, port %s called from %j: %s', (port, from, expected) => {
  expect(enters([nodes, '203.0.113.7/32'], port, from)).toBe(expected);
});

test('the policies select the pods of the controllers, and an update finds their ranges again', () => {
  const policies = callerManifests([nodes, '203.0.113.7/32'], controllerLabels);
  expect(policies.map(({ metadata }) => metadata.name)).toEqual([
    ...['isthmus-agent-callers', 'isthmus-agent-callers-192-0-2-0-24', 'isthmus-agent-callers-203-0-113-7-32'],
  ]);
  for (const { spec } of policies) expect(spec.podSelector.matchLabels).toEqual(controllerLabels);
  expect(callersOf(policies)).toEqual([nodes, '203.0.113.7/32']);
  expect(policiesIn([nodes])).toHaveLength(2);
});

test('ranges add up with those that are installed; what is no range is refused, and so are ranges where the agent has the network of its node', () => {
  expect(settleCallers(['203.0.113.7/32', nodes], [nodes], 'own')).toEqual([nodes, '203.0.113.7/32']);
  expect(settleCallers(undefined, [nodes], 'own')).toEqual([nodes]);
  expect(settleCallers(undefined, [nodes], 'shared')).toEqual([]);
  for (const [asked, process] of [
    [['rome'], 'own'],
    [[nodes], 'shared'],
  ] as const) {
    let code: string | undefined;
    try {
      settleCallers(asked, [], process);
    } catch (error) {
      code = codeOf(error);
    }
    expect(code).toBe('invalid_input');
  }
  expect(parseValues({ webhookCallers: [nodes] }, 'values').webhookCallers).toEqual([nodes]);
  expect(() => parseValues({ webhookCallers: ['rome'] }, 'values')).toThrow(/webhookCallers/);
});
