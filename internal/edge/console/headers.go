package console

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
)

//go:embed static
var static embed.FS

// setHeaders sets the headers of every answer. A browser runs no script but the one of this binary, loads nothing from
// elsewhere, shows the page in no frame, sends forms here only, keeps nothing, and names the page to nobody.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// asset serves a file of this binary.
func asset(name, kind string) func(*call) (answer, error) {
	text, err := static.ReadFile("static/" + name)
	return func(*call) (answer, error) { return answer{kind: kind, text: text}, err }
}

// digest is what a browser checks a file of this binary by: what an earlier server of the address has left in a cache
// is not run.
func digest(name string) string {
	text, _ := static.ReadFile("static/" + name) // the binary has it
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
