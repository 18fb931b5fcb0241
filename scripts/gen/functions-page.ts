/** docs/reference/functions.md: what is deployed in the cloud, what starts it, and everything that it may do. */
import { catalogueOf } from '#functions/catalogue.ts';
import type { CloudFunction, Trigger } from '#functions/cloud-function.ts';
import { type Statement, statementsOf } from '#infra/constructs/access.ts';
import { namesOf } from '#infra/constructs/names.ts';
import { httpFunctionsJson } from './http-functions.ts';
import { code, generatedNote, page, table } from './markdown.ts';

const stage = 'STAGE';
const names = namesOf({ name: stage }, { partition: 'aws', region: 'REGION', account: 'ACCOUNT' });

/** `table:write` needs these; a reader wants to see where exactly. */
const rightsLines = (statements: readonly Statement[]): readonly string[] =>
  statements.flatMap(({ actions, resources, leadingKeys }) =>
    resources.map((resource) =>
      [
        `${actions.join(', ')} on ${code(resource)}`,
        ...(leadingKeys ? [`partitions ${leadingKeys.map(code).join(' ')}`] : []),
      ].join(', '),
    ),
  );

function starter(trigger: Trigger): string {
  switch (trigger.kind) {
    case 'http':
      return code(`${trigger.method} ${trigger.path}`);
    case 'no-route':
      return `requests that match no route, ${code('$default')}`;
    case 'socket':
      return `WebSocket ${code(trigger.route)}`;
    case 'stream':
      return `the table's stream, ${code(JSON.stringify(trigger.filter))}`;
    case 'event':
      return `events ${code(JSON.stringify(trigger.pattern))}`;
    case 'schedule':
      return code(trigger.rate);
  }
}

const row = (fn: CloudFunction): readonly string[] => [
  code(fn.name),
  starter(fn.trigger),
  `${fn.memoryMb} MB, ${fn.timeoutSeconds} s`,
  rightsLines(
    statementsOf(fn, {
      names,
      channel: { apiId: 'WEBSOCKET-API', stageName: 'v1' },
      tableStreamArn: `${names.tableArn}/stream/TIME`,
    }),
  ).join('<br>'),
];

export function functionsPage(): string {
  const functions = catalogueOf(JSON.parse(httpFunctionsJson()) as Parameters<typeof catalogueOf>[0]);
  return page(
    generatedNote('functions/catalogue.ts and infra/constructs/access.ts'),
    '# Cloud functions',
    `One Lambda function per file under ${code('functions/')}. Its role holds the rights listed here and no others; a test compares them with the deployed templates. Wildcards stand where AWS makes the name at run time, and nowhere else. Of the table each function has the kinds of partitions that ${code('functions/table-rights.ts')} gives it; ${code('t/*')} is the tenant's own partition, without those below it.`,
    table(['function', 'started by', 'memory, timeout', 'may'], functions.map(row)),
  );
}
