/** Completion scripts of the shells, from the command tree. They offer commands, options and fixed values; no name that a broker would have to be asked for. */
import type { Command } from 'commander';

/** Options whose value is a file. */
const files = ['--kubeconfig', '--ca-file', '--data'];

interface Entry {
  /** `get clusters`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly string[];
  /** Words that an option's value may be, by the option's long and short names. */
  readonly choices: readonly { readonly flags: readonly string[]; readonly values: readonly string[] }[];
}

function entries(command: Command, path: readonly string[] = []): Entry[] {
  const names = command.commands.map((child) => child.name());
  const flags = command.options.flatMap(({ long, short }) => [long, short].filter((flag) => typeof flag === 'string'));
  const choices = command.options.flatMap(({ long, short, argChoices }) =>
    long && argChoices ? [{ flags: short ? [long, short] : [long], values: argChoices }] : [],
  );
  const args = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  return [
    { path: path.join(' '), words: [...names, ...args, ...flags, '--help'], choices },
    ...command.commands.flatMap((child) => entries(child, [...path, child.name()])),
  ];
}

/** For bash and zsh: cases of `$where`, each of which sets `$offer`. */
function cases(root: Command): string {
  return entries(root)
    .map(({ path, words, choices }) => {
      const byOption = choices
        .map(({ flags, values }) => `      ${flags.join('|')}) offer='${values.join(' ')}' ;;`)
        .join('\n');
      const all = `offer='${words.join(' ')}'`;
      if (byOption === '') return `    '${path}') ${all} ;;`;
      return `    '${path}')\n      case "$previous" in\n${byOption}\n      *) ${all} ;;\n      esac ;;`;
    })
    .join('\n');
}

const commandPaths = (root: Command): readonly string[] =>
  entries(root)
    .map(({ path }) => path)
    .filter((path) => path !== '');

const paths = (root: Command): string =>
  commandPaths(root)
    .map((path) => `'${path}'`)
    .join('|');

/** What bash and zsh call the same things. */
interface CommandLine {
  /** The array of words. */
  readonly words: string;
  /** The index of the word under the cursor. */
  readonly cursor: string;
  /** The index of the first word after the program. */
  readonly first: number;
  readonly completeFile: string;
}

/** For bash and zsh: sets `$offer`, or completes a file and returns. */
const offering = (root: Command, { words, cursor, first, completeFile }: CommandLine): string =>
  `  local previous="\${${words}[${cursor}-1]}" where='' word offer='' i
  for ((i = ${first}; i < ${cursor}; i++)); do
    word="\${${words}[i]}"
    case "\${where:+$where }$word" in
    ${paths(root)}) where="\${where:+$where }$word" ;;
    esac
  done
  case "$previous" in
  ${files.join('|')}) ${completeFile}; return ;;
  esac
  case "$where" in
${cases(root)}
  esac`;

const inBash: CommandLine = {
  words: 'COMP_WORDS',
  cursor: 'COMP_CWORD',
  first: 1,
  completeFile: 'COMPREPLY=($(compgen -f -- "$current"))',
};

const bashCompletion = (root: Command): string => `# bash completion of isthmus
_isthmus() {
  local current="\${COMP_WORDS[COMP_CWORD]}"
${offering(root, inBash)}
  COMPREPLY=($(compgen -W "$offer" -- "$current"))
}
complete -F _isthmus isthmus
`;

const inZsh: CommandLine = { words: 'words', cursor: 'CURRENT', first: 2, completeFile: '_files' };

const zshCompletion = (root: Command): string => `#compdef isthmus
_isthmus() {
${offering(root, inZsh)}
  compadd -- \${=offer}
}
compdef _isthmus isthmus
`;

const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ');

function fishCase({ path, words, choices }: Entry): string {
  const byOption = choices.map(
    ({ flags, values }) => `      case ${quoted(flags)}\n        printf '%s\\n' ${quoted(values)}\n`,
  );
  const all = `printf '%s\\n' ${quoted(words)}`;
  if (byOption.length === 0) return `    case '${path}'\n      ${all}\n`;
  return `    case '${path}'\n      switch "$previous"\n${byOption.join('')}      case '*'\n        ${all}\n      end\n`;
}

const fishCompletion = (root: Command): string => `# fish completion of isthmus
function __isthmus_offer
  set -l words (commandline --tokenize --cut-at-cursor --current-process)
  set -l previous $words[-1]
  set -l where ''
  for word in $words[2..]
    set -l next (string trim -- "$where $word")
    if contains -- "$next" ${quoted(commandPaths(root))}
      set where $next
    end
  end
  if contains -- "$previous" ${quoted(files)}
    __fish_complete_path (commandline --current-token)
    return
  end
  switch "$where"
${entries(root).map(fishCase).join('')}  end
end
complete --command isthmus --no-files --arguments '(__isthmus_offer)'
`;

function powershellCase({ path, words, choices }: Entry): string {
  const list = (all: readonly string[]): string => all.map((word) => `'${word}'`).join(', ');
  const byOption = choices.map(
    ({ flags, values }) => `        { $_ -cin ${list(flags)} } { ${list(values)}; break }\n`,
  );
  const all = `@(${list(words)})`;
  if (byOption.length === 0) return `    '${path}' { ${all}; break }\n`;
  return `    '${path}' {\n      switch ($previous) {\n${byOption.join('')}        default { ${all} }\n      }\n      break\n    }\n`;
}

const powershellCompletion = (root: Command): string => `# PowerShell completion of isthmus
Register-ArgumentCompleter -Native -CommandName isthmus -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $paths = @(${commandPaths(root)
    .map((path) => `'${path}'`)
    .join(', ')})
  $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
  $previous = $words[-1]
  $where = ''
  foreach ($word in ($words | Select-Object -Skip 1)) {
    $next = "$where $word".Trim()
    if ($paths -ccontains $next) { $where = $next }
  }
  if (@(${files.map((file) => `'${file}'`).join(', ')}) -ccontains $previous) { return }
  $offer = switch -CaseSensitive ($where) {
${entries(root).map(powershellCase).join('')}  }
  $offer | Where-Object { $_ -clike "$wordToComplete*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
`;

export const completionScripts = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
  powershell: powershellCompletion,
} as const;

export type Shell = keyof typeof completionScripts;
