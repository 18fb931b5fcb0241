/** The Go module, by oapi-codegen: types, and a client on net/http. */
import { cp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { buildGoProgram } from '#scripts/setup/go-program.ts';
import { runCommand } from '#scripts/setup/run-command.ts';
import type { Sdk } from './sdk.ts';

const version = 'v2.8.2';

/** Also of what it writes. */
export const minimumGo = '1.24.0';

export const goSdk: Sdk = {
  name: 'go',
  async write({ info }, { documentFile, out, root, cache, log }) {
    const generator = await buildGoProgram(
      {
        name: 'oapi-codegen',
        source: { module: `github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@${version}` },
        flags: [],
        about: 'generates the Go client',
        expectedSeconds: 60,
        minimumGo,
      },
      { cache, log },
    );
    // With versions and hashes of what the module needs.
    await cp(path.join(root, 'scripts', 'sdk', 'go-module'), out, { recursive: true });
    const files = ['-o', path.join(out, 'client.gen.go'), documentFile];
    await runCommand(generator, ['-package', 'isthmus', '-generate', 'types,client', ...files]);
    const text = `package isthmus\n\n// Version of the API that this client is of.\nconst Version = ${JSON.stringify(info.version)}\n`;
    await writeFile(path.join(out, 'version.go'), text);
  },
};
