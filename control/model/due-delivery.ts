/** Which delivery comes due, in the order of coming work. */
export interface DueDelivery {
  readonly receiver: string;
  readonly event: string;
}
