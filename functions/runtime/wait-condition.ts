/** When a wait for a peering is over. */
import type { Caller } from '#control/access/caller.ts';
import { awaited } from '#control/events/changes.ts';
import type { PeeringView } from '#control/model/peering.ts';
import { Peering } from '#shared/schema/api/resources.ts';
import type { Input } from './http.ts';
import { peeringResource } from './present.ts';
import type { AnyRoute, Reply } from './route.ts';
import { waitUntil } from './wait.ts';

/** Nothing more happens by itself that a waiting caller would want to see. */
export const isSettled = ({ phase }: Pick<PeeringView, 'phase'>): boolean =>
  phase === 'Ready' || phase === 'Failed' || phase === 'Gone';

type Waiting = Pick<
  Input<'key', unknown, { readonly wait?: number | undefined }, unknown>,
  'control' | 'caller' | 'clock' | 'listen' | 'longestWaitSeconds' | 'signal' | 'query'
> & {
  readonly caller: Caller;
};

export const locationOf = ({ id }: { readonly id: string }): { readonly location: string } => ({
  location: `/v1/peerings/${id}`,
});

/** Of requests that make a peering or change it: what takes time goes on after the answer. */
export const settledAnswers = (already: string): AnyRoute['answers'] => ({
  200: { description: already, body: Peering, location: true },
  201: { description: 'The new peering, which has reached its outcome.', body: Peering, location: true },
  202: {
    description: 'The new peering, which is being set up: GET its Location, with `wait` to hear of the outcome.',
    body: Peering,
    location: true,
  },
});

/** With `wait`, holds back the answer about a new peering until it is settled. */
export async function whenSettled(reply: Reply, { control, caller, query, ...rest }: Waiting): Promise<Reply> {
  const { id } = Peering.pick({ id: true }).parse(reply.body);
  const headers = { ...reply.headers, ...locationOf({ id }) };
  if (!query.wait) return { ...reply, headers };
  const peering = await waitUntil({
    ...rest,
    look: () => control.peerings.get(caller, id, rest.signal),
    done: isSettled,
    seconds: query.wait,
    tenant: caller.tenant,
    names: awaited.peering(caller.tenant, id),
  });
  const status = reply.status === 202 && isSettled(peering) ? 201 : reply.status;
  return { ...reply, ...(status !== undefined && { status }), headers, body: peeringResource(peering) };
}
