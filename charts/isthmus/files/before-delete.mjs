// Ends with 1 while `isthmus uninstall` has not taken Isthmus out: the namespace goes last.
import { readFileSync } from 'node:fs';

const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, TOKEN_FILE: tokenFile } = process.env;
const headers = { authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` };
const admission = '/apis/admissionregistration.k8s.io/v1';
const wanted = {
  'Namespace liqo': '/api/v1/namespaces/liqo',
  'MutatingWebhookConfiguration isthmus-webhook': `${admission}/mutatingwebhookconfigurations/isthmus-webhook`,
  'ValidatingWebhookConfiguration isthmus-webhook': `${admission}/validatingwebhookconfigurations/isthmus-webhook`,
};
const left = [];
for (const [name, path] of Object.entries(wanted)) {
  const { status } = await fetch(`https://${host.includes(':') ? `[${host}]` : host}:${port}${path}`, {
    headers,
    signal: AbortSignal.timeout(30_000),
  });
  if (status === 200) left.push(name);
  else if (status !== 404) left.push(`${name} (the API server answers ${status})`);
}
if (left.length > 0) {
  console.error(
    `Isthmus is still in this cluster: ${left.join(', ')}. Run \`isthmus uninstall --kubeconfig FILE\` first (\`isthmus leave\` where it has joined a broker), then \`helm uninstall\` again.`,
  );
  process.exitCode = 1;
}
