/** What the demo runs, as manifests for kubectl: a Deployment with a Service, offloaded, and a pod that stays at home and calls both. */

export const namespace = 'hello';
export const home = 'hello-home';
export const port = 8080;

/** Where the pods come from, and how they are told what to do. */
export interface Workload {
  readonly image: string;
  /** What `command` and `args` of a container say. */
  readonly serve: Readonly<Partial<Record<'command' | 'args', readonly string[]>>>;
  readonly sleep: Readonly<Partial<Record<'command' | 'args', readonly string[]>>>;
  /** Run in a container: prints what is at the URL. */
  get(url: string): readonly string[];
}

/** test/testbed/workload, or an image that takes the same words. */
export const workloadIn = (image = 'isthmus.test/workload:1'): Workload => ({
  image,
  serve: { args: ['serve', '--port', String(port)] },
  sleep: { args: ['sleep'] },
  get: (url) => ['get', url],
});

const server = `const os = require('node:os'); require('node:http').createServer((q, r) => r.end(os.hostname() + os.EOL)).listen(${port}, () => console.log('serving'))`;
const fetching = `fetch(process.argv[1]).then((r) => r.text()).then(console.log)`;
const ending = `process.on('SIGTERM', () => process.exit());`;

/** On clusters that have the agent's image and perhaps no other: the Node in it. */
export const workloadOfAgent = (image: string): Workload => {
  const node = (script: string): readonly string[] => ['/usr/local/bin/node', '-e', script];
  return {
    image,
    serve: { command: node(`${ending} ${server}`) },
    sleep: { command: node(`${ending} setInterval(() => {}, 60_000)`) },
    get: (url) => [...node(fetching), url],
  };
};

const deployment = ({ image, serve }: Workload) => ({
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
            ...serve,
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

const caller = ({ image, sleep }: Workload) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'caller', namespace: home },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'caller', image, imagePullPolicy: 'IfNotPresent', ...sleep }],
  },
});

const list = (...items: readonly unknown[]) => ({ apiVersion: 'v1', kind: 'List', items });

export const demoManifests = {
  namespaces: () =>
    list(...[namespace, home].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }))),
  workload: (workload: Workload) => list(deployment(workload), service, caller(workload)),
};
