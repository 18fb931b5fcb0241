/** The OpenAPI document: the REST API as the handlers declare it. */
import { openApiDocument } from '#functions/openapi.ts';

/** For readers, and for the broker to serve. */
export const openApiPaths = ['docs/reference/openapi.json', 'functions/api/openapi.json'] as const;

export const openApiJson = (): string => `${JSON.stringify(openApiDocument(), null, 2)}\n`;
