/** The OpenAPI document: the REST API as the handlers declare it. */
import { openApiDocument } from '#functions/openapi.ts';

/** The one that the broker serves. */
export const openApiPath = 'functions/api/openapi.json';

export const openApiJson = (): string => `${JSON.stringify(openApiDocument(), null, 2)}\n`;
