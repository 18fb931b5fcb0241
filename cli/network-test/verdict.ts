/** From what the probes gave to a verdict for each row, and for each failed one the hop. Pure. */
import type { ProbeResult } from '#shared/domain/network-probe.ts';
import type { EndEvidence, Evidence, FailingHop, Leg } from './evidence.ts';
import { failingHop } from './failing-hop.ts';
import { ids, type Matrix, type Row, type TestSide } from './plan.ts';
import type { Side } from './side.ts';

export interface Verdict {
  readonly what: Row['what'];
  /** cluster/node, or `here`. */
  readonly from: string;
  readonly to: string;
  /** Node of the caller's cluster whose NodePort was called. */
  readonly via?: string;
  readonly address: string;
  readonly ok: boolean;
  /** Absent when there was no answer. */
  readonly ms?: number;
  /** Callers' addresses as the receivers saw them. */
  readonly sources: readonly string[];
  readonly failing?: FailingHop;
}

export interface Outcome {
  readonly results: ReadonlyMap<string, ProbeResult>;
  /** By cluster, as they were after the probes. */
  readonly sides: ReadonlyMap<string, Side>;
  readonly tests: ReadonlyMap<string, TestSide>;
  readonly now: number;
}

export const verdictsOf = ({ rows }: Matrix, outcome: Outcome): Verdict[] =>
  rows.map((row) => {
    const result = outcome.results.get(row.id);
    const ok = isGood(row, outcome);
    return {
      what: row.what,
      from: row.by === 'here' ? 'here' : `${row.by.cluster}/${row.by.pod.node}`,
      to: row.to.node === undefined ? row.to.cluster : `${row.to.cluster}/${row.to.node}`,
      ...(row.what.endsWith('nodeport') && { via: row.from.node }),
      address: row.address,
      ok,
      ...(result?.ok && { ms: result.ms }),
      sources: result?.sources ?? [],
      ...(!ok && { failing: failingHop(evidenceOf(straight(row, rows, outcome), rows, outcome)) }),
    };
  });

/** A Service or NodePort fails where one of the pods behind it does not answer its caller: that is what is to be explained then. */
function straight(row: Row, rows: readonly Row[], outcome: Outcome): Row {
  if (row.what !== 'pod-to-service' && !row.what.endsWith('nodeport')) return row;
  const { cluster, node } = row.from;
  const direct = rows.filter(
    ({ what, from }) => what === 'pod-to-pod' && from.cluster === cluster && from.node === node,
  );
  return direct.find((other) => !isGood(other, outcome)) ?? row;
}

const strange = ({ sources }: Row, result: ProbeResult | undefined): string | undefined =>
  sources.length === 0 ? undefined : result?.sources.find((source) => !sources.includes(source));

const answered = ({ probes }: Row, { results }: Outcome): boolean =>
  probes.length > 0 && probes.every(({ id }) => results.get(id)?.ok === true);

const isGood = (row: Row, outcome: Outcome): boolean =>
  answered(row, outcome) && strange(row, outcome.results.get(row.id)) === undefined;

function evidenceOf(row: Row, rows: readonly Row[], outcome: Outcome): Evidence {
  const { results, tests } = outcome;
  const result = results.get(row.id);
  const small = result?.ok === true;
  const seen = small ? strange(row, result) : undefined;
  const large = results.get(ids.large(row.id));
  const failure = small ? large?.failure : (result?.failure ?? 'broken');
  const noAddress =
    row.what === 'pod-to-external' && row.address === '' && !tests.get(row.to.cluster)?.external?.exposed;
  const local = answersLocally(row, outcome);
  const { directly, inside, fromGatewayNode } = comparisons(row, rows, outcome);
  return {
    what: row.what,
    from: endOf(row.from.cluster, row.from.node, outcome),
    to: endOf(row.to.cluster, row.to.node, outcome),
    ...(failure !== undefined && { failure }),
    largeOnly: small && large?.ok === false,
    ...(seen !== undefined && { source: { seen, expected: row.sources.join(' or ') } }),
    ...(noAddress && { noAddress: 'its status has none' }),
    ...(local !== undefined && { answersLocally: local }),
    ...(directly !== undefined && { directly }),
    ...(inside !== undefined && { inside }),
    ...(fromGatewayNode !== undefined && { fromGatewayNode }),
    now: outcome.now,
  };
}

/** Of several answers: whether one was good; undefined without answers. */
const anyOf = (answers: readonly boolean[]): boolean | undefined =>
  answers.length === 0 ? undefined : answers.includes(true);

function answersLocally({ what, to }: Row, { results, tests }: Outcome): boolean | undefined {
  const nodes = tests.get(to.cluster)?.side.nodes ?? [];
  const asked = nodes.flatMap(({ name }) => {
    const id = what === 'pod-to-external' ? ids.localHost(to.cluster, name) : ids.local(to.cluster, to.pod ?? '', name);
    return results.get(id) ?? [];
  });
  return anyOf(asked.map(({ ok }) => ok));
}

function comparisons(
  row: Row,
  rows: readonly Row[],
  outcome: Outcome,
): Pick<Evidence, 'directly' | 'inside' | 'fromGatewayNode'> {
  const good = (which: (other: Row) => boolean) => anyOf(rows.filter(which).map((other) => answered(other, outcome)));
  const { cluster, node } = row.from;
  const direct = rows.filter((r) => r.what === 'pod-to-pod' && r.from.cluster === cluster && r.from.node === node);
  const directly =
    row.what === 'pod-to-service' || row.what.endsWith('nodeport')
      ? direct.length > 0 && direct.every((r) => answered(r, outcome))
      : undefined;
  const inside =
    row.what === 'outside-to-nodeport'
      ? good((r) => r.what === 'pod-to-nodeport' && r.from.cluster === cluster && r.from.node === node)
      : undefined;
  const active = outcome.sides.get(cluster)?.activeNode;
  const fromGatewayNode = good(
    (r) => r.what === row.what && r.address === row.address && r.from.cluster === cluster && r.from.node === active,
  );
  return {
    ...(directly !== undefined && { directly }),
    ...(inside !== undefined && { inside }),
    ...(fromGatewayNode !== undefined && { fromGatewayNode }),
  };
}

export function endOf(cluster: string, node: string | undefined, { sides, results }: Outcome): EndEvidence {
  const side = sides.get(cluster);
  const facts = side?.nodes.find(({ name }) => name === node);
  const leg = node === undefined ? undefined : legOf(cluster, node, results);
  const gatewayLeg = side?.activeNode === undefined ? undefined : legOf(cluster, side.activeNode, results);
  const hosts = [node, side?.gateway?.name, side?.activeNode].filter((host) => host !== undefined);
  return {
    cluster,
    ...(node !== undefined && { node }),
    ranges: rangesOf(side),
    gateway: gatewayOf(side),
    fabric: side?.fabric !== undefined,
    gatewayPods: side?.gatewayPods ?? 0,
    ...(side?.activeNode !== undefined && { activeNode: side.activeNode }),
    ...(side?.connection !== undefined && { connection: side.connection }),
    nodeReady: facts?.ready ?? node === undefined,
    process: facts?.process ?? node === undefined,
    overlay: facts?.overlay ?? node === undefined,
    ...(leg !== undefined && { leg }),
    ...(gatewayLeg !== undefined && { gatewayLeg }),
    hostErrors: (side?.hostErrors ?? [])
      .filter(({ host }) => hosts.some((one) => host === one || host.includes(`gw-${one}`)))
      .map(({ what, message }) => `${what}: ${message}`),
  };
}

function rangesOf(side: Side | undefined): EndEvidence['ranges'] {
  if (side?.ranges === undefined)
    return { missing: `there is no Configuration with the ranges of ${side?.peer ?? 'the peer'}` };
  if (side.ranges.configured) return 'configured';
  return {
    missing: `the ranges of ${side.peer} have no place here yet: ${side.ranges.message ?? 'no reason is given'}`,
  };
}

const gatewayOf = (side: Side | undefined): EndEvidence['gateway'] =>
  side?.gateway === undefined
    ? 'absent'
    : side.gateway.problem === undefined
      ? 'there'
      : { problem: side.gateway.problem };

function legOf(cluster: string, node: string, results: Outcome['results']): Leg | undefined {
  const small = results.get(ids.leg(cluster, node, 'small'));
  const large = results.get(ids.leg(cluster, node, 'large'));
  if (small === undefined) return undefined;
  if (!small.ok) return 'silent';
  return large?.ok === false ? 'small-only' : 'works';
}
