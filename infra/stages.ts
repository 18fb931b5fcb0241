/** What differs between deployments, all of it. Stacks choose nothing by stage name; they read these values. */
import * as z from 'zod';
import { isOrigin, isPolicySource } from '#shared/domain/cross-origin.ts';

const days = z.int().min(1).max(3_653);

const Domain = z.strictObject({
  /** `broker.example.com`: REST API and agents' requests. */
  api: z.hostname(),
  /** `bell.example.com`: the WebSocket. */
  channel: z.hostname(),
  /** A certificate of the same Region that covers both names. */
  certificateArn: z.templateLiteral(['arn:', z.string(), ':acm:', z.string()]),
});

export const StageSettings = z.strictObject({
  /** Part of every physical name: it cannot be changed later. */
  name: z.string().regex(/^[a-z][a-z0-9]{1,15}$/),
  /** Undefined: wherever the credentials of the deployment are. */
  account: z
    .string()
    .regex(/^\d{12}$/)
    .optional(),
  region: z.string().optional(),

  /** The table survives `cdk destroy`, and AWS refuses to delete it. */
  keepData: z.boolean(),
  /** How far back the table can be restored to any second. */
  pointInTimeRecoveryDays: z.int().min(1).max(35),
  /** After a restore: the table to use instead of the one that the data stack made (`npm run restore`). */
  restoredTable: z.strictObject({ name: z.string(), streamArn: z.string() }).optional(),
  /** The bus keeps events this long for replay. */
  archiveDays: days,
  logDays: z.union([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365].map((n) => z.literal(n))),
  logLevel: z.enum(['debug', 'info', 'warn', 'error']),

  /** Requests per second of the whole stage, and how many may come at once. Limits per tenant are the broker's own. */
  throttle: z.strictObject({ perSecond: z.int().min(1), burst: z.int().min(1) }),
  /** Where portals in a browser run; empty: no cross-origin requests. */
  corsOrigins: z.array(
    z.string().refine(isOrigin, 'must be an origin as browsers send it: https://portal.example.com'),
  ),
  /** Origins of identity providers by which readers of the console log in; empty: by keys alone. Other origins the page cannot ask. */
  consoleIssuers: z.array(
    z.string().refine(isPolicySource, 'must be an origin, and no IPv6 address: https://id.example.com'),
  ),
  domain: Domain.optional(),
  /** Concurrent executions that AWS grants the account in this Region: 1,000, or less in a new account. */
  accountConcurrency: z.int().min(100),
  /** Concurrent executions set aside, by function name. They are taken from the account's for all others. */
  reservedConcurrency: z.record(z.string(), z.int().min(1)),

  /** A new version of a function gets a tenth of its calls for so long, and goes back when an alarm rings. Undefined: all calls at once. */
  canaryMinutes: z.literal([5, 10, 15, 30]).optional(),
  /** Get every alarm: e-mail addresses, and HTTPS addresses of a pager. AWS asks each to confirm once. Empty: alarms reach no reader, and the synthesis warns. */
  alarmSubscribers: z.array(z.union([z.email(), z.url({ protocol: /^https$/ })])),
  /** USD a month that the whole account may cost: the alarms' topic is told at 80 % of it, and when the forecast is above it. */
  monthlyBudgetUsd: z.int().min(1),
  dashboard: z.boolean(),
  /** API Gateway writes a WebSocket's access log only with a role set for the whole account and Region: one stage of them owns it. */
  ownsApiGatewayLogRole: z.boolean(),
});
export type StageSettings = z.infer<typeof StageSettings>;

const development: StageSettings = {
  name: 'dev',
  keepData: false,
  pointInTimeRecoveryDays: 1,
  archiveDays: 3,
  logDays: 7,
  logLevel: 'debug',
  throttle: { perSecond: 50, burst: 100 },
  corsOrigins: [],
  consoleIssuers: [],
  accountConcurrency: 1_000,
  reservedConcurrency: {},
  alarmSubscribers: [],
  monthlyBudgetUsd: 20,
  dashboard: false,
  ownsApiGatewayLogRole: true,
};

/**
 * Of the account's 1,000 concurrent executions. What is set aside for a function is also the most that it gets: a long poll holds one for up to 25 s,
 * and all long polls together leave more than half to the agents and to all other requests.
 */
const setAside = {
  // Agents: at 100,000 clusters a few of each are needed, and all of $connect when every connection was lost at once.
  'channel-agent-desired': 60,
  'channel-agent-enroll': 20,
  'channel-agent-observed': 60,
  'channel-connect': 30,
  'channel-disconnect': 30,
  'channel-message': 40,
  // `?wait=`: a tenant within its limit holds 50 at a time.
  'api-event-targets-deliveries-get': 25,
  'api-events-list': 100,
  'api-invitations-redeem': 25,
  'api-peerings-create': 75,
  'api-peerings-delete': 50,
  'api-peerings-get': 150,
  'api-webhooks-deliveries-get': 25,
  // No two look at the same things.
  'schedule-sweep': 1,
} as const;

const production: StageSettings = {
  name: 'production',
  keepData: true,
  pointInTimeRecoveryDays: 35,
  archiveDays: 30,
  logDays: 90,
  logLevel: 'info',
  throttle: { perSecond: 2_000, burst: 4_000 },
  corsOrigins: [],
  consoleIssuers: [],
  accountConcurrency: 1_000,
  reservedConcurrency: setAside,
  canaryMinutes: 10,
  alarmSubscribers: [],
  monthlyBudgetUsd: 300,
  dashboard: true,
  ownsApiGatewayLogRole: true,
};

export const stages: readonly StageSettings[] = [development, production];
