/** What keeps a consumer from its provider's API server. Pure. */
import { label } from '#shared/domain/liqo-keys.ts';
import type { Finding } from '../causes.ts';
import type { ClusterFacts, CredentialFacts } from '../facts.ts';
import { conditionOf, type Rule, some, type View } from './rule.ts';

/** Peers that give this cluster capacity, or should. */
const providersOf = ({ facts, all }: View): string[] => {
  const known = [
    ...facts.identities.map(({ spec }) => spec.clusterID),
    ...facts.credentials.map(({ peer }) => peer),
    ...facts.status.virtualNodes.map(({ spec }) => spec.clusterID),
  ];
  return [...new Set(known)].filter(
    (peer) => peer !== '' && (all.peer === undefined || all.clusters.length > 1 || all.peer === peer),
  );
};

const renewal = ({ cluster, kubectl }: View, peer: string): string =>
  `peer again, which brings new ones: \`isthmus peer ${cluster} ${peer}\`; without a broker \`liqoctl authenticate ${kubectl.replace(/^kubectl /, '')} --remote-kubeconfig KUBECONFIG-OF-${peer}\``;

const place = ({ namespace, secret }: CredentialFacts): string => `Secret ${namespace}/${secret}`;

/** The same fault of two Secrets is one finding. */
function firstOf(found: readonly { readonly credential: CredentialFacts; readonly said: string }[]) {
  const [first] = found;
  return first === undefined ? undefined : { ...first, evidence: found.map(({ said }) => said) };
}

function ofProvider(view: View, peer: string): Finding[] {
  const { cluster, facts, other, all } = view;
  const own = facts.credentials.filter((one) => one.peer === peer);
  const there: ClusterFacts | undefined = other?.cluster === peer ? other.facts : undefined;
  const findings: Finding[] = [];
  const unreadable = own.filter(({ read }) => read === undefined);
  const nodes = facts.status.virtualNodes.filter(({ spec }) => spec.clusterID === peer);
  const lost = nodes.flatMap(({ spec }) => {
    const name = spec.kubeconfigSecretRef?.name;
    return name !== undefined && !own.some(({ secret }) => secret === name) ? [name] : [];
  });
  if (unreadable.length + lost.length > 0) {
    const names = [...unreadable.map(place), ...lost.map((name) => `Secret ${name}`)];
    findings.push({
      code: 'credentials_missing',
      at: cluster,
      text: `the credentials of ${cluster} for ${peer} are gone or cannot be read: ${some(names)}`,
      evidence: [
        ...unreadable.map((one) => `${place(one)} has no kubeconfig that can be read`),
        ...lost.map((name) => `a VirtualNode names Secret ${name}, which is not there`),
      ],
      todo: renewal(view, peer),
    });
  }
  const ended = firstOf(
    own.flatMap((credential) => {
      const endsAt = credential.read?.endsAt;
      return endsAt !== undefined && endsAt <= all.now
        ? [{ credential, said: `${place(credential)}: valid until ${new Date(endsAt).toISOString()}` }]
        : [];
    }),
  );
  if (ended !== undefined) {
    findings.push({
      code: 'credentials_expired',
      at: cluster,
      text: `the certificate of ${cluster} for ${peer} has ended`,
      evidence: ended.evidence,
      todo: renewal(view, peer),
    });
  }
  if (there !== undefined) findings.push(...comparedWith(view, peer, own, there));
  return findings;
}

function comparedWith(view: View, peer: string, own: readonly CredentialFacts[], there: ClusterFacts): Finding[] {
  const { cluster } = view;
  const findings: Finding[] = [];
  const moved = firstOf(
    own.flatMap((credential) => {
      const { read } = credential;
      const isOther =
        read !== undefined && !read.proxied && there.apiServerUrl !== undefined && read.server !== there.apiServerUrl;
      return isOther ? [{ credential, said: `${place(credential)} names ${read.server}` }] : [];
    }),
  );
  if (moved !== undefined) {
    findings.push({
      code: 'provider_moved',
      at: cluster,
      text: `${cluster} looks for the API server of ${peer} at ${moved.credential.read?.server}, and it is at ${there.apiServerUrl}`,
      evidence: [...moved.evidence, `the agent of ${peer} announces ${there.apiServerUrl}`],
      todo: renewal(view, peer),
    });
  }
  const distrusted = firstOf(
    own.flatMap((credential) => {
      const trusts = credential.read?.trusts ?? [];
      const knows =
        trusts.length === 0 || there.ownCas.length === 0 || trusts.some((hash) => there.ownCas.includes(hash));
      return knows ? [] : [{ credential, said: `${place(credential)} trusts a CA with SHA-256 ${trusts[0]}` }];
    }),
  );
  if (distrusted !== undefined) {
    findings.push({
      code: 'provider_ca_changed',
      at: cluster,
      text: `${cluster} trusts another CA for the API server of ${peer} than that server has`,
      evidence: [...distrusted.evidence, `pods of ${peer} trust one with SHA-256 ${there.ownCas[0]}`],
      todo: renewal(view, peer),
    });
  }
  const tenant = there.tenants.find(({ spec }) => spec.clusterID === cluster);
  if (tenant === undefined && own.length > 0) {
    findings.push({
      code: 'peer_unknown',
      at: peer,
      text: `${peer} does not know ${cluster} as a consumer: it has no Tenant for it`,
      evidence: [`${cluster} holds credentials for ${peer} (${some(own.map(({ secret }) => secret))})`],
      todo: renewal(view, peer),
    });
  }
  const lacking = there.consumerRights[cluster] ?? [];
  if (tenant !== undefined && lacking.length > 0) {
    findings.push({
      code: 'consumer_rights',
      at: peer,
      text: `${peer} no longer gives ${cluster} its rights`,
      evidence: lacking,
      todo: `the agent of ${peer} makes them again as soon as it runs and may: \`${view.other?.kubectl} --namespace liqo logs deployment/isthmus-agent --tail 50\``,
    });
  }
  return findings;
}

export const credentials: Rule = (view) => providersOf(view).flatMap((peer) => ofProvider(view, peer));

/** What the agent itself found when it asked: after all that is more exact. */
export const answers: Rule = (view) => {
  const { cluster, facts, all, kubectl } = view;
  return facts.status.peers.flatMap((peer): Finding[] => {
    const id = peer.spec.clusterID;
    if (all.peer !== undefined && all.peer !== id && all.clusters.length === 1) return [];
    const health = conditionOf(peer, 'APIServerStatus');
    if (health === undefined || health.status === 'Established') return [];
    const message = health.message ?? '';
    const server = peer.status?.apiServerUrl ?? 'its API server';
    const base = { at: cluster, evidence: [`ForeignCluster ${id}: ${health.reason}: ${message}`] };
    if (health.reason === 'CertificateExpired')
      return [
        {
          ...base,
          code: 'credentials_expired',
          text: `the certificate of ${cluster} for ${id} has ended`,
          todo: renewal(view, id),
        },
      ];
    if (/x509|certificate|self.signed|unable to verify/i.test(message))
      return [
        {
          ...base,
          code: 'provider_ca_changed',
          text: `${cluster} does not trust the certificate of the API server of ${id}`,
          todo: renewal(view, id),
        },
      ];
    if (/\b401\b|[Uu]nauthorized|does not accept the credentials/.test(message))
      return [
        {
          ...base,
          code: 'consumer_rights',
          text: `${id} does not accept the credentials of ${cluster}`,
          todo: renewal(view, id),
        },
      ];
    return [
      {
        ...base,
        code: 'provider_unreachable',
        text: `the agent of ${cluster} does not reach the API server of ${id} at ${server}`,
        todo: `let pods of ${cluster} reach ${server}; from a node: \`curl --insecure ${server}/readyz\`; \`${kubectl} describe foreigncluster ${id}\` says when it works`,
      },
    ];
  });
};

/** A side that knows the other, where the other does not know it. */
export const known: Rule = (view) => {
  const { cluster, facts, other } = view;
  if (other === undefined) return [];
  const mine = facts.status.peers.some(({ spec }) => spec.clusterID === other.cluster);
  const theirs = other.facts.status.peers.some(({ spec }) => spec.clusterID === cluster);
  if (mine || !theirs) return [];
  const tenantNamespace = other.facts.namespaces.find(
    ({ metadata }) => metadata.labels?.[label.remoteClusterId] === cluster,
  );
  return [
    {
      code: 'peer_unknown',
      at: cluster,
      text: `${other.cluster} knows ${cluster} as a peer, and ${cluster} knows nothing of ${other.cluster}`,
      evidence: [
        `ForeignCluster ${cluster} in ${other.cluster}${tenantNamespace ? `, namespace ${tenantNamespace.metadata.name}` : ''}`,
      ],
      todo: `end it on the side that has it left (\`isthmus unpeer\`), or peer again: \`isthmus peer ${view.all.clusters[0]?.cluster} ${view.all.clusters[1]?.cluster}\``,
    },
  ];
};
