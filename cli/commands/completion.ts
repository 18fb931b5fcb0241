/** isthmus completion: shell scripts made from the command tree, so they cannot forget a command. */
import { Argument, Command } from 'commander';
import type { CliIo } from '#cli/output/io.ts';

export const completionCommand = (io: CliIo): Command =>
  new Command('completion')
    .description('print a completion script for bash or zsh')
    .addArgument(new Argument('<shell>', 'your shell').choices(['bash', 'zsh']))
    .addHelpText(
      'after',
      `
Examples:
  source <(isthmus completion bash)
  isthmus completion zsh > "\${fpath[1]}/_isthmus"`,
    )
    .action((shell: 'bash' | 'zsh', _options: unknown, command: Command) => {
      const root = command.parent ?? command;
      io.stdout.write(shell === 'bash' ? bashCompletion(root) : zshCompletion(root));
    });

interface Entry {
  /** `get clusters`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly string[];
  /** Words that an option's value may be, by option. */
  readonly choices: Readonly<Record<string, readonly string[]>>;
}

function entries(command: Command, path: readonly string[] = []): Entry[] {
  const names = command.commands.map((child) => child.name());
  const flags = command.options.flatMap(({ long, short }) => [long, short].filter((flag) => typeof flag === 'string'));
  const choices = Object.fromEntries(
    command.options.flatMap(({ long, short, argChoices }) =>
      long && argChoices ? [[short ? `${long}|${short}` : long, argChoices] as const] : [],
    ),
  );
  const args = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  return [
    { path: path.join(' '), words: [...names, ...args, ...flags, '--help'], choices },
    ...command.commands.flatMap((child) => entries(child, [...path, child.name()])),
  ];
}

/** Cases of `$where`, each of which sets `$offer`. */
function cases(root: Command): string {
  return entries(root)
    .map(({ path, words, choices }) => {
      const byOption = Object.entries(choices)
        .map(([option, values]) => `      ${option}) offer='${values.join(' ')}' ;;`)
        .join('\n');
      const all = `offer='${words.join(' ')}'`;
      if (byOption === '') return `    '${path}') ${all} ;;`;
      return `    '${path}')\n      case "$previous" in\n${byOption}\n      *) ${all} ;;\n      esac ;;`;
    })
    .join('\n');
}

const paths = (root: Command): string =>
  entries(root)
    .map(({ path }) => path)
    .filter((path) => path !== '')
    .map((path) => `'${path}'`)
    .join('|');

const bashCompletion = (root: Command): string => `# bash completion of isthmus
_isthmus() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" where='' word offer='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "\${where:+$where }$word" in
    ${paths(root)}) where="\${where:+$where }$word" ;;
    esac
  done
  case "$previous" in
  --kubeconfig|--ca-file|--data) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "$where" in
${cases(root)}
  esac
  COMPREPLY=($(compgen -W "$offer" -- "$current"))
}
complete -F _isthmus isthmus
`;

const zshCompletion = (root: Command): string => `#compdef isthmus
_isthmus() {
  local previous="\${words[CURRENT-1]}" where='' word offer='' i
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    case "\${where:+$where }$word" in
    ${paths(root)}) where="\${where:+$where }$word" ;;
    esac
  done
  case "$previous" in
  --kubeconfig|--ca-file|--data) _files; return ;;
  esac
  case "$where" in
${cases(root)}
  esac
  compadd -- \${=offer}
}
compdef _isthmus isthmus
`;
