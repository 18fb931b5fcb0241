/** `npm run gen`: writes what is derived from the schemas. `--check` writes nothing and exits 1 when something is out of date. */
import { generatedTree, refresh, staleFiles } from './generated-tree.ts';

const [option, ...rest] = process.argv.slice(2);
if (rest.length > 0 || (option !== undefined && option !== '--check')) {
  console.error('usage: npm run gen [-- --check]');
  process.exit(2);
}
const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const tree = generatedTree();
const stale = await staleFiles(root, tree);
if (option === '--check') {
  for (const file of stale) console.error(`${file.path}: ${file.why}`);
  if (stale.length > 0) console.error('run `npm run gen` and commit what it writes');
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
  await refresh(root, tree, stale);
  for (const file of stale) console.log(`${file.why === 'no longer generated' ? 'removed' : 'wrote'} ${file.path}`);
  console.log(`${tree.size} files, ${stale.length} changed`);
}
