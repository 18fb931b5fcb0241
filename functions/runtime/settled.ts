/** When a wait for a peering is over. */
import type { Caller } from '#control/access/caller.ts';
import type { PeeringView } from '#control/peerings/peering.ts';
import { Peering } from '#shared/schema/api/resources.ts';
import type { Input, Reply } from './http.ts';
import { peeringResource } from './present.ts';
import { waitUntil } from './wait.ts';

/** Nothing more happens by itself that a waiting caller would want to see. */
export const isSettled = ({ phase }: Pick<PeeringView, 'phase'>): boolean =>
  phase === 'Ready' || phase === 'Failed' || phase === 'Gone';

type Waiting = Pick<
  Input<'key', unknown, { readonly wait?: number | undefined }, unknown>,
  'control' | 'caller' | 'clock' | 'untilChange' | 'longestWaitSeconds' | 'signal' | 'query'
> & {
  readonly caller: Caller;
};

/** With `wait`, holds back the answer about a new peering until it is settled. */
export async function whenSettled(reply: Reply, { control, caller, query, ...rest }: Waiting): Promise<Reply> {
  const { id } = Peering.pick({ id: true }).parse(reply.body);
  if (!query.wait) return reply;
  const peering = await waitUntil({
    ...rest,
    look: () => control.peerings.get(caller, id, rest.signal),
    done: isSettled,
    seconds: query.wait,
    tenant: caller.tenant,
  });
  return { ...reply, body: peeringResource(peering) };
}
