/** Faults of certificates, of what clusters hold for each other, of the broker's trust, and of nodes. */
import { createPrivateKey, createPublicKey, webcrypto } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as x509 from '@peculiar/x509';
import { isthmus } from '#cli/captured-io.ts';
import { admission, label } from '#shared/domain/liqo-keys.ts';
import { runningComponents } from '#test/testbed/processes.ts';
import { slotOf } from '#test/testbed/slots.ts';
import { changed, type DrillGround, type Fault, insist, must } from '../fault.ts';

interface Held {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly data: { readonly kubeconfig: string };
}

/** Rewrites the kubeconfigs that rome holds for milan; the agent of rome may put them right by itself. */
const credentials =
  (rewrite: (kubeconfig: string, ground: DrillGround) => Promise<string>): Fault['inject'] =>
  async (ground) => {
    const listed = await must(ground, 'rome', 'get', 'secrets', '-A', '-l', label.identityType, '-o', 'json');
    const held = (JSON.parse(listed) as { items: Held[] }).items;
    const patch = (one: Held, kubeconfig: string): string[] => [
      ...['patch', 'secret', one.metadata.name, '-n', one.metadata.namespace, '--type', 'merge', '-p'],
      JSON.stringify({ data: { kubeconfig } }),
    ];
    for (const one of held) {
      const text = await rewrite(Buffer.from(one.data.kubeconfig, 'base64').toString(), ground);
      await must(ground, 'rome', ...patch(one, Buffer.from(text).toString('base64')));
    }
    return {
      async undo() {
        for (const one of held) await insist(ground, 'rome', ...patch(one, one.data.kubeconfig));
      },
    };
  };

const fieldOf = (kubeconfig: string, field: string): string =>
  Buffer.from(new RegExp(`"?${field}"?: *"?([A-Za-z0-9+/=]+)`).exec(kubeconfig)?.[1] ?? '', 'base64').toString();
const withField = (kubeconfig: string, field: string, value: string): string =>
  kubeconfig.replace(
    new RegExp(`("?${field}"?: *"?)[A-Za-z0-9+/=]+`),
    (_, head: string) => head + Buffer.from(value).toString('base64'),
  );

/** For the same key, over since an hour. */
async function ended(kubeconfig: string): Promise<string> {
  x509.cryptoProvider.set(webcrypto as never);
  const old = new x509.X509Certificate(fieldOf(kubeconfig, 'client-certificate-data'));
  const key = createPublicKey(createPrivateKey(fieldOf(kubeconfig, 'client-key-data')));
  const signing = await webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: old.subject,
    issuer: old.issuer,
    notBefore: new Date(Date.now() - 7_200_000),
    notAfter: new Date(Date.now() - 3_600_000),
    publicKey: new x509.PublicKey(key.export({ type: 'spki', format: 'der' })),
    signingKey: signing.privateKey as never,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
  });
  return withField(kubeconfig, 'client-certificate-data', certificate.toString('pem'));
}

const ofAuthority = 'certificate-authority-data';

export const trustFaults: readonly Fault[] = [
  {
    what: 'the CA of the provider changed: the consumer trusts another',
    says: 'provider_ca_changed',
    inject: credentials(async (kubeconfig, ground) =>
      withField(kubeconfig, ofAuthority, fieldOf(readFileSync(ground.kubeconfig('rome'), 'utf8'), ofAuthority)),
    ),
  },
  {
    what: "the consumer's certificate expired",
    says: 'credentials_expired',
    inject: credentials(ended),
  },
  {
    what: 'ranges of the provider written wrongly in the consumer',
    says: 'ranges_refused',
    async inject(ground) {
      const what = ['configurations.networking.liqo.io', '-n', 'liqo-tenant-milan'];
      const { items } = JSON.parse(await must(ground, 'rome', 'get', ...what, '-o', 'json'));
      const [{ metadata, spec }] = items;
      const one = [`configuration.networking.liqo.io/${metadata.name}`, '-n', metadata.namespace];
      return changed(
        'rome',
        one,
        { spec: { remote: { cidr: { pod: ['10.77.0.0/16'] } } } },
        { spec: { remote: { cidr: { pod: spec.remote.cidr.pod } } } },
      )(ground);
    },
  },
  {
    what: 'the API server trusts another certificate for the webhooks',
    says: 'webhook_untrusted',
    async inject(ground) {
      const what = ['validatingwebhookconfiguration', admission.configuration];
      const { webhooks } = JSON.parse(await must(ground, 'rome', 'get', ...what, '-o', 'json'));
      const other = Buffer.from(fieldOf(readFileSync(ground.kubeconfig('milan'), 'utf8'), ofAuthority)).toString(
        'base64',
      );
      const setTo = (bundles: readonly string[]) =>
        bundles.map((value, at) => ({ op: 'replace', path: `/webhooks/${at}/clientConfig/caBundle`, value }));
      return changed(
        'rome',
        what,
        setTo(webhooks.map(() => other)),
        setTo(webhooks.map((one: { clientConfig: { caBundle: string } }) => one.clientConfig.caBundle)),
        'json',
      )(ground);
    },
  },
  {
    what: 'broker refuses the agents: their tenant is suspended',
    says: 'broker_refuses',
    async inject({ stage, dir }) {
      const { broker } = stage.world;
      const key = /operator key, shown this once: (\S+)/.exec(readFileSync(broker.logFile, 'utf8'))?.[1] ?? '';
      const { url, caPem } = JSON.parse(readFileSync(path.join(stage.world.stateDir, 'config.json'), 'utf8'));
      const ca = path.join(dir, 'broker-ca.pem');
      writeFileSync(ca, caPem);
      const operator = async (...args: string[]): Promise<void> => {
        const ran = await isthmus(args, { env: { ISTHMUS_CONFIG: path.join(dir, 'operator.json') } });
        if (ran.code !== 0) throw new Error(`isthmus ${args.join(' ')}: ${ran.err}`);
      };
      await operator('login', url, '--ca-file', ca, '--key', key);
      await operator('tenant', 'suspend', 'default', '--reason', 'drill');
      return { undo: () => operator('tenant', 'resume', 'default') };
    },
  },
  {
    what: 'node of the provider down: its kubelet does not answer',
    says: 'nodes_down',
    async inject({ stage }) {
      const slot = slotOf(stage.world.bed.dir);
      const node = stage.world.cluster('milan').nodes[0]?.name ?? '';
      const kubelet = runningComponents(slot ?? -1).get(`${node}/kubelet`);
      if (kubelet === undefined) throw new Error(`no kubelet of ${node} was found`);
      process.kill(kubelet, 'SIGSTOP');
      return { undo: async () => void process.kill(kubelet, 'SIGCONT') };
    },
  },
];
