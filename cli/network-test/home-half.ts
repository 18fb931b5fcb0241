/**
 * The network test where one of the two clusters runs Liqo: there is no image of ours for test pods there, and nothing of ours to repair. What is
 * tested is the half of the cluster that runs Isthmus, from its nodes to its gateway, and the link as the two ends report it.
 */
import { during } from '#cli/output/progress.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { EndEvidence, FailingHop } from './evidence.ts';
import { failingHop } from './failing-hop.ts';
import { testNamespace } from './manifests.ts';
import { legs, type TestSide } from './plan.ts';
import { type Outside, probeAll, type Report, type TestOptions } from './run.ts';
import { readSide, type Side } from './side.ts';
import { type Ground, placePods, runningPods } from './test-pods.ts';
import { endOf, type Outcome, type Verdict } from './verdict.ts';

export interface Halved {
  /** Runs Isthmus. */
  readonly home: Ground;
  /** Runs Liqo. */
  readonly peer: Ground;
}

/** Undefined: neither cluster runs Liqo, or both do. */
export function halfOf([a, b]: readonly [Ground, Ground]): Halved | undefined {
  if ((a.side.liqo === undefined) === (b.side.liqo === undefined)) return undefined;
  return a.side.liqo === undefined ? { home: a, peer: b } : { home: b, peer: a };
}

export async function testHomeHalf(
  { home, peer }: Halved,
  { timeoutMs }: TestOptions,
  { clock, progress, signal }: Outside,
): Promise<Report> {
  const { pods, missing } = await during(progress, 'test pods', async (step) => {
    await placePods(home);
    return runningPods(home, { clock, signal, deadline: clock.now() + timeoutMs }, step);
  });
  if (!pods.some(({ host }) => host)) {
    throw new AppError('deadline_exceeded', `no test pod runs: ${missing.join('; ')}`, {
      detail: { remedy: `look at the pods of namespace ${testNamespace}` },
    });
  }
  const test: TestSide = { side: home.side, pods };
  const results = await during(progress, 'probes', () =>
    probeAll([home], { rows: [], inner: legs(test) }, { clock, signal }, () => undefined),
  );
  const [own, theirs] = await Promise.all(
    [home, peer].map(({ kube, side }) => readSide(kube, side.cluster, side.peer)),
  );
  if (own === undefined || theirs === undefined) throw new AppError('internal', 'a side was not read');
  const outcome: Outcome = {
    results,
    sides: new Map([own, theirs].map((side) => [side.cluster, side])),
    tests: new Map([[own.cluster, test]]),
    now: clock.now(),
  };
  return { ...halfReport(own, theirs, outcome), missing };
}

/** A row for each node of the half that is tested, and one for the link. Pure. */
export function halfReport(home: Side, peer: Side, outcome: Outcome): Pick<Report, 'rows' | 'untried'> {
  const hosts = (outcome.tests.get(home.cluster)?.pods ?? []).filter(({ host }) => host);
  const rows = hosts.map(({ node }): Verdict => {
    const from = endOf(home.cluster, node, outcome);
    const ms = outcome.results.get(`leg/${home.cluster}/${node}/small`)?.ms;
    const ok = isWhole(from) && from.leg === 'works';
    const failing = ok ? {} : { failing: explain(from, linked(peer, 'Connected'), outcome.now) };
    return {
      what: 'node-to-gateway',
      from: `${home.cluster}/${node}`,
      to: home.activeNode === undefined ? home.cluster : `${home.cluster}/${home.activeNode}`,
      address: home.fabric?.address ?? '',
      ok,
      ...(ok && ms !== undefined && { ms }),
      sources: [],
      ...failing,
    };
  });
  const up = home.connection?.value === 'Connected' && peer.connection?.value === 'Connected';
  const gateway = endOf(home.cluster, undefined, outcome);
  const link: Verdict = {
    what: 'gateway-to-peer',
    from: home.cluster,
    to: peer.cluster,
    address: '',
    ok: up,
    sources: [],
    ...(!up && { failing: ofLink(gateway, peer, outcome.now) }),
  };
  return { rows: [...rows, link], untried: [untriedText(home, peer)] };
}

const isWhole = (end: EndEvidence): boolean =>
  end.ranges === 'configured' &&
  end.gateway !== 'absent' &&
  end.activeNode !== undefined &&
  end.fabric &&
  end.nodeReady &&
  end.process &&
  end.overlay;

/** What is not ours to look at counts as there. */
function linked(peer: Side, value: string | undefined): EndEvidence {
  return {
    cluster: peer.cluster,
    ranges: 'configured',
    gateway: 'there',
    fabric: true,
    gatewayPods: 1,
    activeNode: peer.activeNode ?? peer.cluster,
    ...(value !== undefined && { connection: { ...peer.connection, value } }),
    nodeReady: true,
    process: true,
    overlay: true,
    hostErrors: [],
  };
}

/** Nothing was asked across, so a leg that works on a whole half leaves nothing to explain. */
const explain = (from: EndEvidence, to: EndEvidence, now: number): FailingHop =>
  failingHop({
    what: 'node-to-gateway',
    from: { ...from, connection: { value: 'Connected' } },
    to,
    failure: 'timeout',
    largeOnly: false,
    now,
  });

/** Objects of either side that are missing come first, then the tunnel between them; the remedy is one for a peer that runs Liqo. */
function ofLink(home: EndEvidence, peer: Side, now: number): FailingHop {
  const liqo = `(it runs Liqo ${peer.liqo})`;
  if (peer.gateway === undefined) {
    return {
      hop: 'target gateway',
      at: peer.cluster,
      why: `there is no GatewayServer and no GatewayClient for ${peer.peer} in ${peer.cluster} ${liqo}`,
      todo: `make one there: liqoctl network connect, with the kubeconfigs of both clusters`,
    };
  }
  const found = failingHop({
    what: 'gateway-to-peer',
    from: home,
    to: linked(peer, peer.connection?.value),
    failure: 'timeout',
    largeOnly: false,
    now,
  });
  if (found.hop !== 'tunnel') return found;
  const todo = `let the dialling side reach UDP at the endpoint of the other (status.endpoint of the GatewayServer), compare PublicKey with the Secret of the peer, and look at the pods gw-${peer.gateway.name} in the tenant namespace of ${peer.cluster} ${liqo}: no node process of Isthmus is there`;
  return { ...found, todo };
}

const untriedText = (home: Side, peer: Side): string =>
  `the half of ${peer.cluster}, which runs Liqo ${peer.liqo}, and so pods to pods: \`liqoctl test network\` with the kubeconfigs of ${home.cluster} and ${peer.cluster} puts pods into both and calls each from the other`;
