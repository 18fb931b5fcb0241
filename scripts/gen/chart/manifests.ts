/** The template of everything that `isthmus install` applies, made by the same function from marks, which become expressions. Pure. */
import { type InstallOptions, objectsOfAgent } from '#cli/install/manifests.ts';
import type { MetricsAccess } from '#cli/install/metrics-manifests.ts';
import { presetClassNames } from '#cli/install/settle-storage.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { emitter, type Sentinel } from './emit.ts';
import { merge, optional, type Tree, treeOf } from './tree.ts';

const mark = (name: string): string => `@@${name}@@`;
const sentinel = (
  name: string,
  expression: string,
  type: Sentinel['type'] = 'string',
  more: Partial<Sentinel> = {},
): Sentinel => ({ mark: mark(name), expression, type, ...more });
const dashed = (expression: string): string => `(regexReplaceAll "[./]" ${expression} "-")`;
const network = '$.Values.network';
const platform = '$.Values.platform';
const masquerade = `${network}.fullMasquerade`;

const sentinels: readonly Sentinel[] = [
  sentinel('clusterId', '$.Values.clusterId'),
  sentinel('image', '$.Values.image'),
  sentinel('apiServerUrl', '$.Values.apiServerUrl'),
  sentinel('replicas', '$.Values.replicas', 'int'),
  sentinel('sharePercent', '$.Values.sharePercent', 'int'),
  sentinel('labels', '(include "isthmus.labels" $)', 'string', { mark: `${mark('labels')}=` }),
  sentinel('credentials', '$.Values.credentials'),
  sentinel('podCidr', '$podCidr', 'string', { inNames: dashed('$podCidr') }),
  sentinel('reserved', '$reserved', 'string', { inNames: dashed('$reserved') }),
  sentinel('caller', '$caller', 'string', { inNames: dashed('$caller') }),
  sentinel('serviceCidr', `${network}.serviceCidr`),
  sentinel('externalCidr', `${network}.externalCidr`),
  sentinel('internalCidr', `${network}.internalCidr`),
  sentinel('gatewayReplicas', `${network}.gatewayReplicas`, 'int'),
  sentinel('fullMasquerade', `(kindIs "invalid" ${masquerade} | ternary "auto" (toString ${masquerade}))`),
  sentinel('className', '$.Values.storage.className'),
  sentinel('capacityClassName', `($.Values.storage.capacityClassName | default "${presetClassNames.capacity}")`),
  sentinel('isDefault', '(toString $.Values.storage.default)'),
  sentinel('localClass', '$.Values.storage.localClass'),
  sentinel('webhookPort', `${platform}.webhookPort`, 'int'),
  sentinel('virtualNodeLabels', `${platform}.virtualNodeLabels`, 'map'),
  sentinel('gatewayAnnotations', `${platform}.gatewayAnnotations`, 'map'),
  sentinel('gatewayHealthPort', `${platform}.gatewayHealthPort`, 'int'),
];

/** Parts that are there or not, and nothing else hangs on them. */
const optionals = {
  labels: '$.Values.labels',
  credentials: '$.Values.credentials',
  gatewayReplicas: `${network}.gatewayReplicas`,
  localClass: '$.Values.storage.localClass',
  virtualNodeLabels: `${platform}.virtualNodeLabels`,
  gatewayAnnotations: `${platform}.gatewayAnnotations`,
  gatewayHealthPort: `${platform}.gatewayHealthPort`,
} as const;
type Optional = keyof typeof optionals;

interface Shape {
  readonly network: boolean;
  readonly manyRanges: boolean;
  readonly storage: boolean;
  readonly metrics: MetricsAccess | undefined;
  readonly constraints: boolean;
  readonly callers: boolean;
}

const yesNo = (condition: string) =>
  [
    { value: true, when: condition },
    { value: false, when: `(not ${condition})` },
  ] as const;
const metricsAre = (access: MetricsAccess) => ({ value: access, when: `(eq (toString $.Values.metrics) "${access}")` });
const choices: { readonly [K in keyof Shape]: readonly { readonly value: Shape[K]; readonly when: string }[] } = {
  network: yesNo(`${network}.enabled`),
  manyRanges: yesNo(`(gt (len ${network}.podCidrs) 1)`),
  storage: yesNo('$.Values.storage.enabled'),
  metrics: [metricsAre('authenticated'), metricsAre('open'), { value: undefined, when: '(not $.Values.metrics)' }],
  constraints: yesNo(`${platform}.securityContextConstraints`),
  callers: yesNo('$.Values.webhookCallers'),
};

const standsFor = <T>(name: string): T => mark(name) as T;

function optionsOf(shape: Shape, absent?: Optional): InstallOptions {
  const has = (name: Optional): boolean => name !== absent;
  return {
    clusterId: mark('clusterId'),
    image: mark('image'),
    apiServerUrl: mark('apiServerUrl'),
    replicas: standsFor('replicas'),
    sharePercent: standsFor('sharePercent'),
    ...(has('labels') && { labels: { [mark('labels')]: '' } }),
    ...(has('credentials') && { credentials: standsFor<NonNullable<InstallOptions['credentials']>>('credentials') }),
    ...(shape.callers && { webhookCallers: [mark('caller')] }),
    ...(shape.metrics !== undefined && { metrics: shape.metrics }),
    ...(shape.storage && {
      storage: {
        className: mark('className'),
        capacityClassName: mark('capacityClassName'),
        isDefault: standsFor('isDefault'),
        ...(has('localClass') && { localClass: mark('localClass') }),
      },
    }),
    ...(shape.network && {
      network: {
        ranges: {
          podCidrs: [mark('podCidr'), ...(shape.manyRanges ? [mark('nextPodCidr')] : [])],
          serviceCidr: mark('serviceCidr'),
          externalCidr: mark('externalCidr'),
          internalCidr: mark('internalCidr'),
          reservedSubnets: [mark('reserved')],
          fixed: { external: true, internal: true },
        },
        fullMasquerade: standsFor('fullMasquerade'),
        ...(has('gatewayReplicas') && { gatewayReplicas: standsFor<number>('gatewayReplicas') }),
      },
    }),
    platform: {
      webhookPort: standsFor('webhookPort'),
      ...(has('virtualNodeLabels') && { virtualNodeLabels: { [mark('virtualNodeLabels')]: '' } }),
      ...(has('gatewayAnnotations') && { gatewayAnnotations: { [mark('gatewayAnnotations')]: '' } }),
      ...(has('gatewayHealthPort') && { gatewayHealthPort: standsFor<number>('gatewayHealthPort') }),
      ...(shape.constraints && { securityContextConstraints: true as const }),
    },
  };
}

/** Stands for that there are several, and is one of the loop's. */
const isTemplate = (text: string): boolean => !text.includes(mark('nextPodCidr'));

/** By their text: hundreds of variants consist of the same few hundred objects, which are compared by identity then. */
const known = new Map<string, KubeObject>();
function sameObject(text: string, object: KubeObject): KubeObject {
  const first = known.get(text) ?? object;
  known.set(text, first);
  return first;
}

function shaped(shape: Shape): Tree {
  const objects = (absent?: Optional): KubeObject[] =>
    objectsOfAgent(optionsOf(shape, absent)).flatMap((object) => {
      const text = JSON.stringify(object);
      return isTemplate(text) ? [sameObject(text, object)] : [];
    });
  return (Object.keys(optionals) as Optional[]).reduce(
    (tree, name) => optional(tree, objects(name), optionals[name]),
    treeOf(objects()),
  );
}

function over(names: readonly (keyof Shape)[], shape: Partial<Shape>): Tree {
  const [name, ...rest] = names;
  if (name === undefined) return shaped(shape as Shape);
  return merge(choices[name].map(({ value, when }) => ({ when, tree: over(rest, { ...shape, [name]: value }) })));
}

const loops = [
  { mark: mark('podCidr'), over: `$podCidr := ${network}.podCidrs` },
  { mark: mark('caller'), over: '$caller := $.Values.webhookCallers' },
  { mark: mark('reserved'), over: `$reserved := ${network}.reservedSubnets` },
];

export function manifestsTemplate(): string {
  const all = over(Object.keys(choices) as (keyof Shape)[], {});
  if (all.kind !== 'list') throw new Error('manifests are a list');
  const emit = emitter(sentinels);
  const documents = [...all.items].map(([identity, { when, tree }]) => {
    const document = `---\n${emit(tree)}`;
    const loop = loops.find((one) => identity.includes(one.mark) || mentions(tree, one.mark));
    const looped = loop === undefined ? document : `{{- range ${loop.over} }}\n${document}\n{{- end }}`;
    return when === undefined ? looped : `{{- if ${when} }}\n${looped}\n{{- end }}`;
  });
  return `${documents.join('\n')}\n`;
}

/** As a value of its specification. */
function mentions(tree: Tree, text: string): boolean {
  if (tree.kind === 'scalar') return tree.value === text;
  if (tree.kind === 'choice') return tree.options.some((one) => mentions(one.tree, text));
  return [...(tree.kind === 'map' ? tree.entries : tree.items).values()].some((one) => mentions(one.tree, text));
}
