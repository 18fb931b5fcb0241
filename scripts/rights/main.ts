/** The last check of `npm test`: whether every right that an installation gives was used by the tests before it, by the audit logs of their API servers. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { unseenRights } from '#cli/install/unseen-rights.ts';
import { readUsedRights, rightsVariable } from '#test/testbed/asked-rights.ts';
import { cacheDir } from '../setup/cache-dir.ts';
import { narrowable, rightsList, rightsOf, rightsProblems } from './compare.ts';
import { installedRoles } from './installed-roles.ts';

const folder = process.env[rightsVariable];
const { servers, used } = folder === undefined ? { servers: 0, used: [] } : await readUsedRights(folder);
if (servers === 0) {
  console.error(
    'no audit log of an API server was kept: this check follows the tests on real components, in npm test as a whole',
  );
  process.exitCode = 1;
} else {
  const roles = installedRoles();
  const problems = rightsProblems(roles, used, unseenRights);
  const rights = roles.reduce((sum, { rules }) => sum + rightsOf(rules).length, 0);
  console.log(
    `${rights} rights in ${roles.length} roles, ${unseenRights.flatMap((one) => one.rights).length} of them listed as not used; audit logs of ${servers} API servers; ${problems.length} problems`,
  );
  for (const problem of problems) console.error(problem);
  const list = path.join(cacheDir(), 'used-rights.txt');
  await writeFile(list, `${rightsList(roles, used).join('\n')}\n`);
  console.log(`each right, and where it was used: ${list}`);
  const narrow = narrowable(roles, used);
  console.log(
    `${narrow.length} rights of the whole cluster were used in the system namespace and tenant namespaces only`,
  );
  for (const one of narrow) console.log(one);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
