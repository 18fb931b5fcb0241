/** The formula for Homebrew, read by Ruby itself with what Homebrew gives to a formula. */
import { beforeAll, expect, test } from 'vitest';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureDebianPackages, formulaPackages } from '#scripts/setup/debian-packages.ts';
import { must } from '#test/harness/program.ts';
import { homebrewFormula, sha256 } from './documents.ts';

beforeAll(() => ensureDebianPackages(formulaPackages, cacheDir(), () => undefined), 300_000);

const about = { version: '1.2.3', description: 'Lends "capacity"', homepage: 'https://example.test/v1' };
const cli = { url: 'https://example.test/v1/a.tgz', sha256: sha256(Buffer.from('a')) };
const formula = homebrewFormula(about, cli);

test('is Ruby without a warning', async () => {
  const { stdout, stderr } = await must('ruby', ['-wc', '-'], { input: formula });
  expect([stdout.trim(), stderr]).toEqual(['Syntax OK', '']);
});

/** Keeps what a formula declares, as Homebrew's class does, and the commands that it would run. */
const homebrew = `
require 'json'
class Formula
  %w[desc homepage url version sha256 license depends_on].each do |word|
    define_singleton_method(word) { |*given| given.empty? ? (@said ||= {})[word] : (@said ||= {})[word] = given.first }
  end
  def self.said = @said
  def self.test(&steps) = @steps = steps
  def self.steps = @steps
  def ran = @ran ||= []
  def std_npm_args = ['--global']
  def system(*line) = ran << line
  def bin = Folder.new('/bin', self)
  def libexec = Folder.new('/libexec', self)
  def version = self.class.said['version']
  def generate_completions_from_executable(*line) = ran << ['completions', *line.map(&:to_s)]
  def shell_output(line) = "isthmus #{version}".tap { ran << [line] }
  def assert_match(wanted, text) = text.include?(wanted) || raise("#{text} has no #{wanted}")
end
Folder = Struct.new(:path, :formula) do
  def /(name) = "#{path}/#{name}"
  def glob(pattern) = ["#{path}/#{pattern}"]
  def install_symlink(all) = formula.ran << ['symlink', *all]
  def to_s = path
end
`;

test('declares the tarball by its checksum, installs it with npm, and tests the version', async () => {
  const steps = 'it = Isthmus.new; it.install; it.instance_eval(&Isthmus.steps); puts [Isthmus.said, it.ran].to_json';
  const { stdout } = await must('ruby', ['-'], { input: `${homebrew}\n${formula}\n${steps}` });
  expect(JSON.parse(stdout)).toEqual([
    {
      desc: about.description,
      homepage: about.homepage,
      ...cli,
      version: '1.2.3',
      license: 'Apache-2.0',
      depends_on: 'node',
    },
    [
      ['npm', 'install', '--global'],
      ['symlink', '/libexec/bin/*'],
      ['completions', '/bin/isthmus', 'completion'],
      ['/bin/isthmus version --client'],
    ],
  ]);
});
