/** docs/reference/events.json: for programs, the JSON Schema of every event type as it is delivered, with an example. */
import * as z from 'zod';
import { type CatalogueEntry, catalogue } from '#control/events/catalogue.ts';
import { type DeliveredType, typeName } from '#control/events/cloud-event.ts';
import { exampleOf } from './events-page.ts';

export const eventSchemasPath = 'docs/reference/events.json';

/** Readers must bear members that a later broker adds, so nothing is closed in what is published. */
function dataSchema({ data }: CatalogueEntry): object {
  const { $schema: _, ...schema } = z.toJSONSchema(data, {
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  return schema;
}

const text = { type: 'string', minLength: 1 };

const schemaOf = (type: DeliveredType, entry: CatalogueEntry): object => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: typeName(type),
  description: entry.meaning,
  type: 'object',
  required: ['specversion', 'id', 'source', 'type', 'subject', 'time', 'datacontenttype', 'data'],
  properties: {
    specversion: { const: '1.0' },
    id: text,
    source: { ...text, format: 'uri' },
    type: { const: typeName(type) },
    subject: text,
    time: { type: 'string', format: 'date-time' },
    datacontenttype: { const: 'application/json' },
    data: dataSchema(entry),
  },
});

export function eventSchemas(): Readonly<Record<string, { readonly schema: object; readonly example: object }>> {
  return Object.fromEntries(
    Object.entries(catalogue).map(([type, entry]) => [
      typeName(type),
      { schema: schemaOf(type as DeliveredType, entry), example: exampleOf(type as DeliveredType) },
    ]),
  );
}

export const eventSchemasJson = (): string =>
  `${JSON.stringify({ specversion: '1.0', types: eventSchemas() }, null, 2)}\n`;
