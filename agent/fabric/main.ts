/** Composition root of the node process: one per node, for the host's namespace and those of the gateway pods on it. */
const version = process.env.ISTHMUS_VERSION ?? '0.0.0-dev';
const [role] = process.argv.slice(2);
if (role === 'version') console.log(version);
else {
  console.error(`the node process has no role ${JSON.stringify(role ?? '')}, accepted: version`);
  process.exitCode = 2;
}
