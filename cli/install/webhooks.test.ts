import { describe, expect, test } from 'vitest';
import { capturedIo } from '#cli/captured-io.ts';
import type { KubeClient } from '#cli/cluster/open.ts';
import {
  clusterRoles,
  deployments,
  mutatingWebhookConfigurations,
  services,
  validatingWebhookConfigurations,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { agentRules } from './agent-rights.ts';
import { pastWebhooks } from './apply.ts';
import { ourConfigurations, removeOrphanedWebhooks, unregister } from './webhooks.ts';

type Stored = KubeObject & { rules?: unknown };

/** Keeps objects; answers access reviews from the rules of the agent's role, `lag` questions late. */
function cluster(objects: readonly [ResourceType, Stored][], lag = 0) {
  const left = new Map(objects.map(([type, object]) => [`${type.plural}/${object.metadata.name}`, { type, object }]));
  const log: string[] = [];
  let asked = 0;
  const key = (type: ResourceType, ref: ObjectRef) => `${type.plural}/${ref.name}`;
  const kube = {
    get: async (type: ResourceType, ref: ObjectRef) => left.get(key(type, ref))?.object,
    list: async (type: ResourceType) =>
      [...left.values()].filter((one) => one.type.plural === type.plural).map(({ object }) => object),
    delete: async (type: ResourceType, ref: ObjectRef) => {
      log.push(`delete ${key(type, ref)}`);
      return left.delete(key(type, ref));
    },
    mergePatch: async (type: ResourceType, ref: ObjectRef, patch: object) => {
      log.push(`patch ${key(type, ref)}`);
      Object.assign(left.get(key(type, ref))?.object ?? {}, patch);
    },
    create: async () => {
      asked += 1;
      log.push('ask');
      return { status: { allowed: asked <= lag } };
    },
  } as unknown as KubeClient;
  return { kube, log, has: (type: ResourceType, name: string) => left.has(key(type, { name })) };
}

const object = (kind: string, name: string, more: object = {}): Stored => ({
  apiVersion: 'v1',
  kind,
  metadata: { name },
  ...more,
});
const byService = (namespace = 'liqo') => ({
  webhooks: [{ name: 'a.liqo.io', clientConfig: { service: { namespace, name: 'isthmus-webhook' } } }],
});
const mutating: [ResourceType, Stored] = [mutatingWebhookConfigurations, object('M', 'isthmus-webhook', byService())];
const validating: [ResourceType, Stored] = [
  validatingWebhookConfigurations,
  object('V', 'isthmus-webhook', byService()),
];
const foreign: [ResourceType, Stored] = [
  validatingWebhookConfigurations,
  object('V', 'theirs', byService('elsewhere')),
];
const service: [ResourceType, Stored] = [services, object('Service', 'isthmus-webhook')];
const agent: [ResourceType, Stored] = [deployments, object('Deployment', 'isthmus-agent')];
const role: [ResourceType, Stored] = [clusterRoles, object('ClusterRole', 'isthmus-agent', { rules: agentRules([]) })];
const io = () => {
  let now = 0;
  const sleep = async (ms: number): Promise<void> => {
    now += ms;
  };
  const clock = { now: () => now, sleep };
  return capturedIo({ clock });
};

describe('a registration of webhooks', () => {
  test('is ours by its Service, and where the agent is called by URL by name and label', async () => {
    const byUrl = object('M', 'isthmus-webhook', {
      metadata: { name: 'isthmus-webhook', labels: { 'liqo.io/webhook': 'true' } },
    });
    const { kube } = cluster([[mutatingWebhookConfigurations, byUrl], validating, foreign]);
    expect((await ourConfigurations(kube)).map(({ object: { metadata } }) => metadata.name)).toEqual([
      'isthmus-webhook',
      'isthmus-webhook',
    ]);
  });

  test('stays while an agent is installed behind it', async () => {
    const { kube, log } = cluster([mutating, validating, service, agent]);
    expect(await removeOrphanedWebhooks(kube)).toBeUndefined();
    expect(log).toEqual([]);
  });

  test.each([
    { without: 'Service', present: [agent], says: 'there is no Service liqo/isthmus-webhook' },
    { without: 'Deployment', present: [service], says: 'there is no Deployment liqo/isthmus-agent' },
  ])('without a $without behind it goes, and others stay', async ({ present, says }) => {
    const under = cluster([mutating, validating, foreign, ...present]);
    expect(await removeOrphanedWebhooks(under.kube)).toMatch(says);
    expect(under.has(mutatingWebhookConfigurations, 'isthmus-webhook')).toBe(false);
    expect(under.has(validatingWebhookConfigurations, 'theirs')).toBe(true);
  });

  test('goes after the agent has lost the right to put it back, and the API server has heard of that', async () => {
    const { kube, log } = cluster([role, mutating, validating], 2);
    await unregister(io(), kube);
    const configuration = 'webhookconfigurations/isthmus-webhook';
    expect(log).toEqual([
      'patch clusterroles/isthmus-agent',
      'ask',
      'ask',
      'ask',
      `delete mutating${configuration}`,
      `delete validating${configuration}`,
    ]);
    const { rules = [] } = (await kube.get(clusterRoles, { name: 'isthmus-agent' })) ?? {};
    const registering = rules.filter(({ apiGroups }) => apiGroups?.includes('admissionregistration.k8s.io'));
    expect(registering.map(({ verbs }) => verbs)).toEqual([
      ['get', 'list', 'watch'],
      ['get', 'list', 'watch'],
    ]);
    expect(rules).toHaveLength(agentRules([]).length);
  });

  test('goes all the same where the agent has that right from elsewhere', async () => {
    const under = cluster([role, mutating], Number.POSITIVE_INFINITY);
    await unregister(io(), under.kube);
    expect(under.has(mutatingWebhookConfigurations, 'isthmus-webhook')).toBe(false);
  });
});

describe('a write that webhooks of ours stand in the way of', () => {
  const refusal = (name: string) =>
    new AppError('kube_failed', `refused: Internal error occurred: failed calling webhook "${name}": no endpoints`);

  test('is done once the API server asks them no more', async () => {
    let times = 0;
    const write = async () => {
      times += 1;
      if (times < 3) throw refusal('network.validate.liqo.io');
      return 'done';
    };
    expect(await pastWebhooks(io(), write)).toBe('done');
  });

  test('fails after 15 s with what to look at', async () => {
    const write = async () => {
      throw refusal('network.validate.liqo.io');
    };
    await expect(pastWebhooks(io(), write)).rejects.toMatchObject({
      code: 'kube_failed',
      message: expect.stringMatching(/for 15 s the agent's webhooks did not answer: .*network\.validate\.liqo\.io/),
      detail: { remedy: expect.stringContaining('describe deployment isthmus-agent') },
    });
  });

  test('is not tried again where the webhook is not ours', async () => {
    let times = 0;
    const write = async () => {
      times += 1;
      throw refusal('policy.example.com');
    };
    await expect(pastWebhooks(io(), write)).rejects.toMatchObject({
      message: expect.stringContaining('policy.example'),
    });
    expect(times).toBe(1);
  });
});
