package command

import (
	"fmt"
	"strings"
)

// stockOnly are the commands and flags of the stock CLI that deployctl does not have, by the words after the program's
// name, with advice on what to use instead. docs/compatibility.md lists them.
var stockOnly = map[string]string{
	"console":                          "see `deployctl stack`",
	"convert":                          "use `pulumi convert`",
	"env":                              "",
	"import --from":                    "make a file with `pulumi import --from`, and pass it as --file",
	"login":                            "see `deployctl settings` for the service's address and token",
	"logout":                           "see `deployctl settings` for the service's address and token",
	"logs":                             "",
	"org":                              "see `deployctl member` and `deployctl token`",
	"package":                          "use `pulumi package`",
	"policy":                           "use --policy-pack of `deployctl up` for a policy pack in a directory",
	"schema":                           "use `pulumi schema`",
	"state upgrade":                    "nothing is needed: older formats are read",
	"watch":                            "run `deployctl up` again",
	"config env":                       "",
	"config refresh":                   "",
	"stack graph":                      "use `deployctl graph`",
	"refresh --import-pending-creates": "use `deployctl resolve` or the next `deployctl up`",
	"up --run-program":                 "an up runs the program anyway",
	"plugin run":                       "use `pulumi plugin run`",
}

// stock returns a hint for a word that the stock CLI accepts in this place; "" if it does not.
func (l line) stock(word string) string {
	_, place, _ := strings.Cut(l.String(), " ")
	advice, known := stockOnly[strings.TrimSpace(place+" "+word)]
	switch {
	case !known:
		return ""
	case advice == "":
		return ", which only the stock CLI has; there is no replacement yet"
	}
	return fmt.Sprintf(", which only the stock CLI has; %s", advice)
}
