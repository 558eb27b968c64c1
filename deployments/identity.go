package deployments

import (
	"strconv"
	"strings"
)

// ParseIdentity reads the identity of a stack, ORGANIZATION/PROJECT/STACK with #2, #3 and so on for the stacks that got
// the name later, and returns the name.
func ParseIdentity(identity string) (StackName, error) {
	text, number, later := strings.Cut(identity, "#")
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		name := StackName{Organization: parts[0], Project: parts[1], Stack: parts[2]}
		n, err := strconv.Atoi(number)
		if name.Validate() == nil && (!later || err == nil && n >= 2 && strconv.Itoa(n) == number) {
			return name, nil
		}
	}
	return StackName{}, Errorf(CodeInvalid, "%s is not the identity of a stack: that is its first name, "+
		"ORGANIZATION/PROJECT/STACK, with #2, #3 and so on for those that had the name after it", quoted(identity))
}
