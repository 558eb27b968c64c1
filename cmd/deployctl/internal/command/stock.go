package command

import (
	"fmt"
	"strings"
)

// stockOnly are the commands and flags of the stock CLI that deployctl does not have, by the words after the program's
// name, with advice on what to use instead. docs/compatibility.md lists them.
var stockOnly = map[string]string{
	"console":                              "see `deployctl stack`",
	"convert":                              "use `pulumi convert`",
	"env":                                  "",
	"import --from":                        "make a file with `pulumi import --from`, and pass it as --file",
	"login":                                "see `deployctl settings` for the service's address and token",
	"logout":                               "see `deployctl settings` for the service's address and token",
	"org":                                  "see `deployctl member` and `deployctl token`",
	"package":                              "use `pulumi package`",
	"policy":                               "use --policy-pack of `deployctl up` for a policy pack in a directory",
	"schema":                               "use `pulumi schema`",
	"state promote":                        "use `pulumi state promote`",
	"state upgrade":                        "nothing is needed: older formats are read",
	"config env":                           "",
	"config refresh":                       "",
	"stack graph":                          "use `deployctl graph`",
	"refresh --import-pending-creates":     "use `deployctl resolve` or the next `deployctl up`",
	"up --run-program":                     "an up runs the program anyway",
	"up --secrets-provider":                "use it with `deployctl stack init` or `deployctl stack change-secrets-provider`",
	"plugin run":                           "use `pulumi plugin run`",
	"up --expect-no-changes":               "use it with `deployctl preview`",
	"refresh --expect-no-changes":          "use it with `deployctl preview --kind refresh`",
	"up --target-replace":                  "use --target and --replace",
	"preview --target-replace":             "use --target and --replace",
	"up --attach-debugger":                 "",
	"preview --attach-debugger":            "",
	"stack init --teams":                   "use `deployctl team`",
	"stack init --yes":                     "it asks nothing when the stack is named",
	"stack init --copy-config-from":        "use `deployctl config cp --dest STACK`",
	"stack output --shell":                 "use --json",
	"stack ls --tag":                       "use --json, which has the tags",
	"stack ls --project":                   "use --all",
	"import --generate-resources":          "",
	"stack --show-urns":                    "use `deployctl state ls --urns`",
	"stack --show-ids":                     "use `deployctl state ls`",
	"stack rm --remove-backups":            "nothing is left to be removed",
	"api":                                  "call it at the service's own address, as docs/stock-cli.md says",
	"deployment":                           "use `pulumi deployment`, which the service answers",
	"do":                                   "use `pulumi do`: `deployctl up` keeps what it has made",
	"gen-completion":                       "use `deployctl completion`",
	"insights":                             "",
	"neo":                                  "",
	"project":                              "use `deployctl stack ls --all`, or `deployctl new`",
	"template":                             "use `deployctl new --list`, or `deployctl new` with the address of a git repository",
	"stack drift":                          "use `deployctl drift`",
	"stack get":                            "use `deployctl stack`",
	"stack migrate":                        "use `pulumi stack export` there, and `deployctl stack import` here",
	"stack policy":                         "use --policy-pack of `deployctl up` for a policy pack in a directory",
	"stack schedule":                       "use `deployctl schedule`",
	"stack webhook":                        "use `deployctl webhook`",
	"state get":                            "use `deployctl state show`",
	"about --stack":                        "use `deployctl stack`",
	"about --transitive":                   "",
	"config --open":                        "",
	"config get --open":                    "",
	"config set --raw":                     "pass the value as an argument, which stays as it is",
	"config set-all --json":                "use `deployctl config cp`, or several --plaintext and --secret",
	"install --parallel":                   "",
	"install --use-language-version-tools": "install the language's tools on the workers",
	"logs --config-file":                   "it shows what updates have logged, and asks no cloud",
	"logs --resource":                      "it shows what updates have logged, and asks no cloud",
	"logs --since":                         "it shows what updates have logged, and asks no cloud",
	"new --list-templates":                 "use --list",
	"new --offline":                        "its own templates need no network",
	"new --runtime-options":                "write them below runtime.options in Pulumi.yaml",
	"plugin install --exact":               "a version that is named is installed exactly",
	"plugin install --parallel":            "",
	"stack --show-name":                    "use `deployctl stack --json`",
	"stack history --full-dates":           "use --json",
	"stack select --secrets-provider":      "use it with `deployctl stack init`",
	"stack tag --stack":                    "pass it to its commands",
	"up --strict":                          "an up carries out just what was confirmed; see also --save-plan of `deployctl preview`",
	"watch --secrets-provider":             "use it with `deployctl stack init`",
}

// stockEverywhere are such flags of many commands.
var stockEverywhere = map[string]string{
	"--show-sames":       "use `deployctl state ls` for what does not change",
	"--show-reads":       "",
	"--suppress-outputs": "use --quiet",
	"--debug":            "use `deployctl attach --json` for every event",
	"--color":            "set NO_COLOR",
	"--verbose":          "",
	"-v":                 "",
	"--config-path":      "use --path",

	"--show-config":                "use `deployctl config`",
	"--show-full-output":           "use `deployctl stack output`",
	"--show-secrets":               "use it with `deployctl stack output` or `deployctl config`",
	"--suppress-progress":          "use --quiet",
	"--suppress-permalink":         "there is no such line",
	"--fully-qualify-stack-names":  "--json names them whole",
	"--show-replacement-steps":     "",
	"--show-policy-remediations":   "",
	"--show-policy-exceptions":     "",
	"--skip-config-validation":     "",
	"--skip-pending-creates":       "",
	"--disable-integrity-checking": "",
	"--override-env":               "",
	"--emoji":                      "",
	"--neo":                        "",
	"--output":                     "use --json",
	"--skip-plugin-pre-install":    "",
	"--urns":                       "use `deployctl state ls --urns`",
	"--logflow":                    "",
	"--logtostderr":                "",
	"--tracing":                    "",
	"--otel-traces":                "",
	"--profiling":                  "",
}

// stock returns a hint for a word that the stock CLI accepts in this place; "" if it does not.
func (l line) stock(word string) string {
	_, place, _ := strings.Cut(l.String(), " ")
	if l.command != nil { // by whatever name
		place = strings.TrimSpace(place[:strings.LastIndexByte(" "+place, ' ')] + l.command.Name)
	}
	advice, known := stockOnly[strings.TrimSpace(place+" "+word)]
	if !known && l.command != nil {
		advice, known = stockEverywhere[word]
	}
	switch {
	case !known:
		return ""
	case advice == "":
		return ", which only the stock CLI has; there is no replacement yet"
	}
	return fmt.Sprintf(", which only the stock CLI has; %s", advice)
}
