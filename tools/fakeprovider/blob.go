package fakeprovider

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// accessKey is the secret of a thing: always the same, so that a refresh finds no change, and easy to search for.
func accessKey(kind, id string) string {
	sum := sha256.Sum256([]byte("access key of " + kind + " " + id))
	return "AK" + hex.EncodeToString(sum[:16])
}

// blob is n bytes of text that depend on the id alone and do not compress well.
func blob(id string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		sum := sha256.Sum256([]byte(id + " " + strconv.Itoa(i)))
		b.WriteString(base64.RawStdEncoding.EncodeToString(sum[:]))
	}
	return b.String()[:n]
}
