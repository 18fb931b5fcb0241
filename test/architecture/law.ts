/** The import law: the allowed imports between rooms, each rule with its reason. Extend it when you add a room. */

export interface Law {
  /** Files the rule is about, as paths from the root. */
  readonly from: RegExp;
  readonly except?: RegExp;
  /** Imports that breach it: a path from the root, or a bare package name. */
  readonly never: RegExp;
  readonly because: string;
}

const node = /^node:/;

/**
 * Decisions, plans, objects and models: functions from values to values. Of admission everything but the webhooks, which read what the rules
 * are given.
 */
export const pureFile = new RegExp(
  [
    String.raw`(^|\/)(decide|plan|model|objects?|[a-z-]+-(model|tables|plan|object))\.ts$`,
    String.raw`^agent\/network\/(ipam|addresses|plan|objects|gateway\/templates)\/`,
    String.raw`^agent\/reflection\/(model|kinds)\/`,
    String.raw`^agent\/broker\/(kinds\/|sync\/(manifest-check|observed-objects|policy-check)\.ts$)`,
    String.raw`^agent\/(network|peering|offloading\/(consumer|provider))\/admission\/(?!webhooks)`,
    String.raw`^agent\/(network\/|peering\/|offloading\/provider\/)?model\/`,
    String.raw`^kube\/model\/`,
    String.raw`^control\/(model|input|peerings\/(core|terms|link|state-machine))\/`,
    String.raw`^shared\/domain\/`,
  ].join('|'),
);

export const importLaw: readonly Law[] = [
  {
    from: /^shared\//,
    never: /^(kube|control|functions|infra|agent|cli|console|scripts|bench|test)\//,
    because: 'shared is the vocabulary of both planes; it knows no speaker',
  },
  {
    from: /^shared\//,
    never: /^node:(?!events$)/,
    because: 'shared does no I/O, so that the browser, Lambda and the agent can all load it',
  },
  {
    from: /^shared\/(?!async\/)/,
    never: node,
    because: 'only an abort scope needs Node, to say how many listeners a signal may have',
  },
  {
    from: /^kube\//,
    never: /^(control|functions|infra|agent|cli|console|scripts|bench|test)\/|^@aws-sdk\//,
    because: 'kube is a client of API servers: agent, cli and tests use it, and it knows none of them',
  },
  {
    from: /^control\//,
    never: /^(kube|functions|infra|agent|cli|console|scripts|bench)\//,
    because: 'control is the broker without its edge; adapters and functions point inward',
  },
  {
    from: /^control\//,
    except: /^control\/adapters\//,
    never: /^@aws-sdk\/|^better-sqlite3$|^node:sqlite$/,
    because: 'the core runs in one process and in the cloud; only adapters know where it is',
  },
  {
    from: /^control\//,
    never: /^@kubernetes\//,
    because: 'the broker moves objects between clusters and never talks to a Kubernetes API server',
  },
  {
    from: /^functions\//,
    never: /^(kube|agent|cli|console|infra|scripts|bench)\//,
    because: 'functions are the edge of control and of nothing else',
  },
  {
    from: /^infra\//,
    except: /^infra\/app\.ts$/,
    never:
      /^(kube|agent|cli|console|scripts|bench|test)\/|^control\/(?!adapters\/dynamodb\/table\.ts)|^functions\/(?!(catalogue|cloud-function|table-rights|runtime\/(bus-patterns|env))\.ts)/,
    because:
      'infra names functions by their files and reads data only: the catalogue, the rights, the environment, the table; no code that runs in the cloud',
  },
  {
    from: /^infra\/rules\//,
    never: /^(node:|aws-cdk-lib|constructs)/,
    because: 'rules are data that a reader can check without knowing the CDK',
  },
  {
    from: /^(shared|kube|control|functions|agent|cli|console)\//,
    never: /^(aws-cdk-lib|constructs|cdk-nag)/,
    because: 'what runs does not carry what deploys it',
  },
  {
    from: /^agent\//,
    never: /^(control|functions|infra|cli|console|scripts|bench)\/|^@aws-sdk\//,
    because: 'the agent reaches the broker only through its channel',
  },
  {
    from: /^agent\/(?!broker\/|main\.ts)/,
    never: /^agent\/broker\//,
    because: 'controllers read and write Kubernetes objects; the writer of an object is none of their business',
  },
  {
    from: /^agent\/offloading\/consumer\//,
    never: /^agent\/offloading\/provider\//,
    because:
      'the two sides of offloading meet in objects: what a consumer may do at a provider, admission there decides',
  },
  {
    from: /^agent\/offloading\/provider\//,
    never: /^agent\/offloading\/consumer\//,
    because: 'a provider serves consumers of other makes, too',
  },
  {
    from: /^cli\//,
    except: /^cli\/commands\/broker[^/]*\.ts$/,
    never: /^(control|functions|agent|console|infra|scripts|bench)\//,
    because: 'the CLI is a client of the REST API; only `broker serve` carries the broker itself',
  },
  {
    from: /^console\//,
    never:
      /^(kube|control|functions|agent|cli|infra|scripts|bench|test)\/|^shared\/(ports|schema|async)\/|^node:|^zod$/,
    because: 'the console is a page of the public API: a portal can show what it shows, with the client that it has',
  },
  {
    from: /^(agent|control|functions|cli|console|kube|shared)\/(?!(.*\/)?testing\/)/,
    never: /^test\/|(^|\/)testing\//,
    because: 'the product does not depend on its tests, nor on what only they need',
  },
  {
    from: pureFile,
    never: /^node:(?!crypto$|util$)|^@kubernetes\/client-node$|^ws$|^pino$|^kube\/(?!model\/|writes\/)/,
    because: 'decisions are pure: no client, no socket, no process; their tests are tables',
  },
];

/** Words whose use in pure files shows a hidden dependency, and the port to use instead. */
export const impureWords: readonly { readonly word: RegExp; readonly instead: string }[] = [
  { word: /\bDate\.now\(/, instead: 'take `now` as a parameter (Clock)' },
  { word: /\bnew Date\(\)/, instead: 'take `now` as a parameter (Clock)' },
  { word: /\bMath\.random\(/, instead: 'take the value as a parameter (Ids)' },
  { word: /\bprocess\.env\b/, instead: 'take compiled configuration' },
  { word: /\bset(Timeout|Interval)\(/, instead: 'return when to look again' },
];

/** Only composition roots read the environment. */
export const environmentReaders =
  /^(agent\/main\.ts|agent\/config\.ts|agent\/network\/node\/(main|config)\.ts|agent\/network\/probe\/main\.ts|agent\/storage\/mover\/main\.ts|cli\/(main|preflight-hook)\.ts|cli\/.*config.*\.ts|cli\/output\/.*\.ts|functions\/runtime\/.*|functions\/local\/.*|infra\/app\.ts|scripts\/.*|bench\/.*|test\/.*|vitest\.config\.ts)$/;

export const budget = { stop: 500 } as const;
/** Files over the budget, each with the reason why it may be. */
export const overBudget: Readonly<Record<string, string>> = {
  'shared/api-client/broker-api.ts': 'generated: one file to take along, as long as the API is wide',
};

export const bannedFileNames = /(^|\/)(utils?|helpers?|common|misc|base)(\.test)?\.ts$/;
