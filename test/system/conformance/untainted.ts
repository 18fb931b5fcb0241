/** The suite takes no node with a taint for its own, so the virtual node loses the one that it always has: a webhook takes it off whenever the agent puts it there. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { KubeApi } from '#kube/model/types.ts';
import { type MutatingWebhookConfiguration, mutatingWebhookConfigurations, nodes } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { label, virtualNodeTaint, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import { CertificateAuthority } from '#test/testbed/pki.ts';

const name = 'untainted.isthmus.test';
const lookMs = 10_000;

interface Review {
  readonly request: { readonly uid: string; readonly object: Node };
}

const hasTaint = ({ spec }: Node): boolean => spec?.taints?.some(({ key }) => key === virtualNodeTaint.key) ?? false;

function answerTo({ request: { uid, object } }: Review): object {
  const taints = (object.spec?.taints ?? []).filter(({ key }) => key !== virtualNodeTaint.key);
  const patch = Buffer.from(JSON.stringify([{ op: 'add', path: '/spec/taints', value: taints }])).toString('base64');
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, allowed: true, patchType: 'JSONPatch', patch },
  };
}

/** `host`: an address of this machine that the API server reaches. Resolves with how to stop. */
export async function keepUntainted(api: KubeApi, host: string): Promise<() => Promise<void>> {
  const authority = await CertificateAuthority.create(name);
  const server = createServer(await authority.issue({ commonName: name, ips: [host] }), (request, response) => {
    json(request).then(
      (review) => response.end(JSON.stringify(answerTo(review as Review))),
      () => response.writeHead(400).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  await api.apply(
    mutatingWebhookConfigurations,
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name },
      webhooks: [
        {
          name,
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          failurePolicy: 'Ignore',
          timeoutSeconds: 30,
          objectSelector: { matchLabels: { [label.type]: virtualNodeType } },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['nodes'] }],
          clientConfig: { url: `https://${host}:${port}/`, caBundle: Buffer.from(authority.cert).toString('base64') },
        },
      ],
    } as Parameters<typeof api.apply<MutatingWebhookConfiguration>>[1],
    { fieldManager: name },
  );
  // A change of the node, with which it comes by the webhook. The API server goes on without a webhook that is late once: then the taint is back.
  const touch = async (): Promise<void> => {
    const tainted = (await api.list(nodes)).filter((node) => isVirtualNode(node) && hasTaint(node));
    const annotations = { [name]: `${port} ${Date.now()}` };
    for (const { metadata } of tainted)
      await api.mergePatch(nodes, { name: metadata.name }, { metadata: { annotations } });
  };
  await touch();
  const timer = setInterval(() => void touch().catch(() => undefined), lookMs);
  return async () => {
    clearInterval(timer);
    await api.delete(mutatingWebhookConfigurations, { name });
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
}
