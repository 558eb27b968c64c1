package command

import (
	"fmt"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// completions are the scripts of the shells. They run deployctl with completionFlag, which prints one completion a
// line, followed by a tab and a description, or filesWanted.
var completions = map[string]string{
	"bash": `_deployctl() {
  local line="${COMP_LINE:0:COMP_POINT}" found prefix cur
  local -a words
  read -ra words <<< "$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  cur="${words[${#words[@]}-1]}"
  prefix="${cur%"${cur##*[:=]}"}" # bash completes from its last word break on
  COMPREPLY=()
  while IFS=$'\t' read -r found _; do
    if [[ "$found" == "<files>" ]]; then
      COMPREPLY=($(compgen -f -- "$cur"))
      return
    fi
    COMPREPLY+=("$(printf %q "${found#"$prefix"}")")
  done < <("${words[@]}" --generate-bash-completion 2>/dev/null)
}
complete -F _deployctl deployctl
`,
	"zsh": `#compdef deployctl
_deployctl() {
  local -a found values shown
  local one
  found=("${(@f)$(${(Q)words[1,CURRENT-1]} "${(Q)words[CURRENT]}" --generate-bash-completion 2>/dev/null)}")
  if [[ "${found[1]}" == "<files>" ]]; then
    _files
    return
  fi
  for one in $found; do
    values+=("${one%%$'\t'*}")
    shown+=("${one/$'\t'/  -- }")
  done
  compadd -l -d shown -a values
}
compdef _deployctl deployctl
`,
	"fish": `function __deployctl_complete
  set -l words (commandline -opc)
  set -l cur (commandline -ct)
  set -l found ($words "$cur" --generate-bash-completion 2>/dev/null)
  if test "$found[1]" = "<files>"
    __fish_complete_path "$cur"
  else
    printf '%s\n' $found
  end
end
complete -c deployctl -f -a '(__deployctl_complete)'
`,
}

func completionCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a shell's completion script", ArgsUsage: "SHELL",
		Description: "SHELL is bash, zsh or fish. For bash: source <(deployctl completion bash)",
		Action: func(c *cli.Context) error {
			script, ok := completions[c.Args().First()]
			if !ok {
				return deployments.Errorf(deployments.CodeInvalid,
					"there is no completion script for %q; SHELL is bash, zsh or fish", c.Args().First())
			}
			_, err := fmt.Fprint(s.Out, script)
			return err
		},
	}
}
