/** What goes beside the artefacts of a release: checksums, and the descriptions that Homebrew and krew install by. */
import { createHash } from 'node:crypto';
import * as yaml from 'yaml';

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** In the form of `sha256sum --check`, sorted by name. */
export const checksums = (files: Readonly<Record<string, Uint8Array>>): string =>
  Object.keys(files)
    .sort()
    .map((name) => `${sha256(files[name] ?? new Uint8Array())}  ${name}\n`)
    .join('');

export interface Artefact {
  /** Where it will be published. */
  readonly url: string;
  readonly sha256: string;
}

export interface Release {
  readonly version: string;
  readonly description: string;
  readonly homepage: string;
}

const text = (value: string): string => JSON.stringify(value);

/** Over the npm tarball, as Homebrew wants programs of Node. */
export const homebrewFormula = (
  { version, description, homepage }: Release,
  cli: Artefact,
): string => `class Isthmus < Formula
  desc ${text(description)}
  homepage ${text(homepage)}
  url ${text(cli.url)}
  version ${text(version)}
  sha256 ${text(cli.sha256)}
  license "Apache-2.0"

  depends_on "node"

  def install
    system "npm", "install", *std_npm_args
    bin.install_symlink libexec.glob("bin/*")
    generate_completions_from_executable(bin/"isthmus", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/isthmus version --client")
  end
end
`;

/** `archive` holds `kubectl-isthmus`, a program that Node runs. */
export const krewManifest = ({ version, description, homepage }: Release, archive: Artefact): string =>
  yaml.stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'isthmus' },
    spec: {
      version: `v${version}`,
      homepage,
      shortDescription: 'Lend capacity between clusters',
      description,
      caveats: 'Needs Node 20.19 or newer on the path.',
      platforms: [
        {
          selector: { matchExpressions: [{ key: 'os', operator: 'In', values: ['linux', 'darwin'] }] },
          uri: archive.url,
          sha256: archive.sha256,
          bin: 'kubectl-isthmus',
          files: [
            { from: 'kubectl-isthmus', to: '.' },
            { from: 'LICENSE', to: '.' },
          ],
        },
      ],
    },
  });
