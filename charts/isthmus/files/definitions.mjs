// Brings the CustomResourceDefinitions to those of this chart: Helm writes them at the first installation only.
import { readFileSync } from 'node:fs';
import { ask, until } from './api.mjs';

const definitions = JSON.parse(readFileSync(new URL('./definitions.json', import.meta.url), 'utf8'));
const at = (name) => `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`;

for (const object of definitions) {
  const { name } = object.metadata;
  const { status, body } = await ask(`${at(name)}?fieldManager=isthmus-chart&force=true`, {
    method: 'PATCH',
    type: 'application/apply-patch+yaml',
    object,
  });
  if (status > 201)
    throw new Error(`CustomResourceDefinition ${name}: the API server answers ${status}: ${body.message}`);
}
for (const { metadata } of definitions) {
  const missing = await until(60, async () => {
    const { body } = await ask(at(metadata.name));
    const isServed = body.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True');
    return isServed ? undefined : 'it is not established after 60 s';
  });
  if (missing !== undefined) throw new Error(`CustomResourceDefinition ${metadata.name}: ${missing}`);
}
console.log(`${definitions.length} CustomResourceDefinitions are those of this chart`);
