/** How much of one kind is reflected, in one namespace of the consumer. */
export interface ReflectedItems {
  readonly namespace: string;
  /** Of the controller that reflects them. */
  readonly controller: string;
  readonly count: number;
}
