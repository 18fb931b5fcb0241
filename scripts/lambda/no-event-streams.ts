/** Stands in for `@smithy/core/event-streams` in bundles: the clients bring it along, 15 KB of it, and no command that we send streams events. */
const refuse = (): never => {
  throw new Error('no operation of ours streams events');
};
export const eventStreamSerdeProvider = refuse;
export const EventStreamSerde = refuse;
