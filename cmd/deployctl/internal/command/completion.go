package command

import (
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// completions are what each shell runs: deployctl itself lists what may follow, one a line, with its usage after ":".
var completions = map[string]string{
	"bash": `_deployctl() {
  local cur="${COMP_WORDS[COMP_CWORD]}" words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  [[ "$cur" == -* ]] && words+=("$cur")
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null | cut -d: -f1)" -- "$cur"))
  [[ ${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _deployctl deployctl
`,
	"zsh": `#compdef deployctl
_deployctl() {
  local -a found
  local cur="${words[CURRENT]}"
  if [[ "$cur" == -* ]]; then
    found=("${(@f)$(_CLI_ZSH_AUTOCOMPLETE_HACK=1 ${words[@]:0:#words[@]-1} ${cur} --generate-bash-completion 2>/dev/null)}")
  else
    found=("${(@f)$(_CLI_ZSH_AUTOCOMPLETE_HACK=1 ${words[@]:0:#words[@]-1} --generate-bash-completion 2>/dev/null)}")
  fi
  if [[ -n "${found[1]}" ]]; then _describe 'values' found; else _files; fi
}
compdef _deployctl deployctl
`,
	"fish": `function __deployctl_complete
  set -l words (commandline -opc)
  set -l cur (commandline -ct)
  string match -q -- '-*' $cur; and set words $words $cur
  $words --generate-bash-completion 2>/dev/null | string replace -r ':' '\t'
end
complete -c deployctl -f -a '(__deployctl_complete)'
`,
}

func completionCommand(s *Surroundings) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a shell's completion script", ArgsUsage: "SHELL",
		Description: "SHELL is bash, zsh or fish. For bash: source <(deployctl completion bash)",
		BashComplete: func(*cli.Context) {
			for _, shell := range sorted(completions) {
				_, _ = fmt.Fprintln(s.Out, shell)
			}
		},
		Action: func(c *cli.Context) error {
			script, ok := completions[c.Args().First()]
			if !ok {
				return deployments.Errorf(deployments.CodeInvalid, "there is no completion for %q; there is for bash, zsh and fish", c.Args().First())
			}
			_, err := fmt.Fprint(s.Out, script)
			return err
		},
	}
}
