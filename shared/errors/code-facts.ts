/** What is known about an error code, in every plane. */
export interface CodeFacts {
  readonly http: number;
  readonly retry: boolean;
  readonly exit: number;
  readonly cause: string;
  readonly remedy: string;
}
