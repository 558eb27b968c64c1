package deployments

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// omittedWords stand in an event for a value that is too large for it: its size as JSON, and its digest.
const omittedWords = "(%d bytes with the digest %64s are not shown; `deployctl stack export` has them)"

// Omit returns what stands for a value in an event that is too large for a client. Values that differ have different
// texts.
func Omit(value any) string {
	data, _ := json.Marshal(value)
	return fmt.Sprintf(omittedWords, len(data), fmt.Sprintf("%x", sha256.Sum256(data)))
}

// OmittedSize returns the size of the value for which a text of Omit stands; false if the value is no such text.
func OmittedSize(value any) (size int, ok bool) {
	text, isText := value.(string)
	if !isText || !strings.HasPrefix(text, "(") || len(text) > len(omittedWords)+100 {
		return 0, false
	}
	digest := ""
	if n, err := fmt.Sscanf(text, omittedWords, &size, &digest); n != 2 || err != nil || size < 0 {
		return 0, false
	}
	return size, text == fmt.Sprintf(omittedWords, size, digest)
}
