/**
 * How the node processes reach the API server: with an account that has every right, and through a socket, since no network namespace of a node leads out.
 */
import { mkdirSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { KubeApi } from '#kube/model/types.ts';
import { clusterRoleBindings, namespaces, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { TestApiServer } from '../../../harness/kube-apiserver.ts';
import type { NetnsFixture } from '../../../harness/netns.ts';
import type { TestNode } from '../../../harness/netns-cluster.ts';

const toUnixSocket = fileURLToPath(new URL('to-unix-socket.mjs', import.meta.url));

export class ApiAccess {
  readonly #netns: NetnsFixture;
  #port = '';
  #bridge: net.Server | undefined;

  constructor(netns: NetnsFixture) {
    this.#netns = netns;
  }

  /** As the kubelet mounts the account into a pod. */
  get accountFolder(): string {
    return path.join(this.#netns.folder, 'sa');
  }

  get #socket(): string {
    return path.join(this.#netns.folder, 'api.sock');
  }

  async open(api: KubeApi, server: TestApiServer): Promise<void> {
    const token = await accountToken(api);
    mkdirSync(this.accountFolder);
    this.#netns.file(server.ca, 'sa/ca.crt');
    this.#netns.file(token, 'sa/token');
    this.#netns.file('liqo', 'sa/namespace');
    const { hostname, port } = new URL(server.url);
    this.#port = port;
    this.#bridge = net.createServer((inside) => {
      const outside = net.connect(Number(port), hostname);
      // Either end takes the other along; a connection that broke is no failure of the bridge.
      pipeline(inside, outside, inside, () => undefined);
    });
    await new Promise<void>((resolve) => this.#bridge?.listen(this.#socket, resolve));
  }

  /** From now on the node has the API server at its loopback address, until it goes down. */
  lead({ netns }: TestNode): void {
    const command = [process.execPath, toUnixSocket, this.#port, this.#socket];
    this.#netns.start('nsenter', ['-t', String(netns.pid), '-n', ...command]);
  }

  close(): void {
    this.#bridge?.close();
  }
}

async function accountToken(api: KubeApi): Promise<string> {
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'liqo' } });
  const ref = { namespace: 'liqo', name: 'isthmus-fabric' };
  await api.create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: ref });
  await api.create(clusterRoleBindings, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'isthmus-fabric' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', ...ref }],
  });
  const requested = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 7200 },
  };
  const { status } = await api.post<never, { status: { token: string } }>(
    serviceAccounts as never,
    ref,
    'token',
    requested,
  );
  return status.token;
}
