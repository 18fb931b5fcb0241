/** What the demo runs: a namespace and a Deployment of the test workload, as files for kubectl. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

export const namespace = 'hello';
const testWorkload = 'isthmus.test/workload:1';

const deployment = (image: string) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'hello', namespace },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'hello' } },
    template: {
      metadata: { labels: { app: 'hello' } },
      spec: {
        terminationGracePeriodSeconds: 5,
        containers: [
          {
            name: 'hello',
            image,
            imagePullPolicy: 'IfNotPresent',
            args: ['print', '--interval', '1s'],
            resources: { requests: { cpu: '10m', memory: '16Mi' } },
          },
        ],
      },
    },
  },
});

const write = async (name: string, object: unknown): Promise<string> => {
  const to = path.join(await mkdtemp(path.join(os.tmpdir(), 'isthmus-demo-')), `${name}.json`);
  await writeFile(to, JSON.stringify(object));
  return to;
};

export const demoManifests = {
  namespaceFile: () => write('namespace', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }),
  deploymentFile: (image = testWorkload) => write('deployment', deployment(image)),
};
