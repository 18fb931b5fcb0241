/** What the environment of every cloud function holds. Infrastructure sets it, `cloud.ts` reads it once; nothing here is secret. */
import * as z from 'zod';

export const CloudEnv = z.object({
  /** Name of the table, in the function's own Region. */
  TABLE_NAME: z.string().min(1),
  /** Name of the event bus. */
  BUS_NAME: z.string().min(1),
  /** `https://broker.example.com`, without a slash at the end: what join tokens carry and agents sign for. */
  BROKER_URL: z.url({ protocol: /^https$/ }).regex(/[^/]$/, 'must not end in a slash'),
  /** `https://ID.execute-api.REGION.amazonaws.com/STAGE`: where messages to WebSockets are posted. */
  SOCKET_ENDPOINT: z.url(),
  /** `wss://bell.example.com`: where agents connect, when that is not the management endpoint's own address. */
  SOCKET_URL: z.url({ protocol: /^wss$/ }).optional(),
  /** Name of the secret that holds the keyring for tenants' secrets. */
  BOX_SECRET: z.string().min(1),
  /** Whom roles of tenants have to trust before events go into their buses and queues: an ARN. */
  EVENT_PRINCIPAL: z.string().min(1),
  /** The function's own role, of which it takes a session for each tenant that it serves. */
  SESSION_ROLE: z.string().min(1).optional(),
  /** Instead of AWS, for functions on a machine of our own: where sessions are taken. */
  AWS_ENDPOINT_URL_STS: z.url().optional(),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  /** How often an agent with nothing to say reports. The price of an idle cluster hangs on it. */
  HEARTBEAT_SECONDS: z.coerce.number().int().min(15).max(3_600).default(300),
  /** For functions on a machine of our own only: in Lambda, loopback is the runtime's own API. Infrastructure cannot set it. */
  PRIVATE_WEBHOOKS: z.stringbool().default(false),
  /** Instead of AWS, for the same functions only: where roles are assumed and buses and queues are. */
  EVENT_TARGETS_ENDPOINT: z.url().optional(),
});
export type CloudEnv = z.infer<typeof CloudEnv>;

/** For infrastructure: a name that is missing or misspelt fails to compile. */
export type CloudEnvironment = Readonly<
  Record<
    Exclude<
      keyof CloudEnv,
      | 'AWS_ENDPOINT_URL_STS'
      | 'EVENT_TARGETS_ENDPOINT'
      | 'HEARTBEAT_SECONDS'
      | 'PRIVATE_WEBHOOKS'
      | 'SESSION_ROLE'
      | 'SOCKET_URL'
    >,
    string
  >
> & {
  readonly HEARTBEAT_SECONDS?: string;
  readonly SOCKET_URL?: string;
};
