import { expect, test } from 'vitest';
import { gatewayTemplates } from './gateway-templates.ts';

interface Rendered {
  readonly template: {
    readonly spec: {
      readonly deployment: {
        readonly spec: {
          readonly template: {
            readonly spec: {
              readonly containers: readonly {
                readonly env: readonly { readonly name: string; readonly value: string }[];
                readonly resources: { readonly limits: { readonly memory: string } };
              }[];
            };
          };
        };
      };
    };
  };
}
const mebibytes = (text: string | undefined): number => Number(/^(\d+)MiB?$/.exec(text ?? '')?.[1]);

test('wireguard-go collects its garbage long before its container is killed for its memory', () => {
  const templates = gatewayTemplates({ image: 'isthmus.dev/agent:1', replicas: 1 });
  expect(templates).toHaveLength(2);
  for (const { spec } of templates) {
    const rendered = spec as unknown as Rendered;
    const [container] = rendered.template.spec.deployment.spec.template.spec.containers;
    const from = mebibytes(container?.env.find(({ name }) => name === 'GOMEMLIMIT')?.value);
    expect(from * 2).toBeLessThan(mebibytes(container?.resources.limits.memory.replace('Mi', 'MiB')));
  }
});
