/** What the demo runs, as manifests for kubectl: a Deployment with a Service, offloaded, and a pod that stays at home and calls both. */

export const namespace = 'hello';
export const home = 'hello-home';
export const port = 8080;
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
            args: ['serve', '--port', String(port)],
            ports: [{ containerPort: port }],
            resources: { requests: { cpu: '10m', memory: '16Mi' } },
          },
        ],
      },
    },
  },
});

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'hello', namespace },
  spec: { selector: { app: 'hello' }, ports: [{ port: 80, targetPort: port }] },
};

const caller = (image: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'caller', namespace: home },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'caller', image, imagePullPolicy: 'IfNotPresent', args: ['sleep'] }],
  },
});

const list = (...items: readonly unknown[]) => ({ apiVersion: 'v1', kind: 'List', items });

export const demoManifests = {
  namespaces: () =>
    list(...[namespace, home].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }))),
  workload: (image = testWorkload) => list(deployment(image), service, caller(image)),
};
