#!/usr/bin/env node
// Starts the command line: the bundle where one was built, else from the sources of this checkout.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const bundle = path.join(root, 'dist', 'cli.mjs');
if (!existsSync(bundle)) process.argv.splice(2, 0, 'cli/main.ts');
await import(pathToFileURL(existsSync(bundle) ? bundle : path.join(root, 'scripts', 'run.mjs')).href);
