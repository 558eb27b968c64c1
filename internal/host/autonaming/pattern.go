package autonaming

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
)

// pattern is the parts of a name: text, the resource's name, or random characters.
type pattern []part

// part is one part of a pattern. Its name is empty for text.
type part struct {
	name   string // name, hex, alphanum, string, num or uuid
	text   string
	length int
}

const (
	// longestRandom bounds the characters of one random part.
	longestRandom = 256
	// mostParts and longestFixed bound a pattern: its parts, and what they have beside the resource's name.
	mostParts, longestFixed = 64, 4 << 10
)

// alphabets are the characters of random parts.
var alphabets = map[string]string{
	"hex": "0123456789abcdef", "alphanum": "abcdefghijklmnopqrstuvwxyz0123456789", "string": "abcdefghijklmnopqrstuvwxyz",
	"num": "0123456789",
}

var (
	expression = regexp.MustCompile(`\$\{([^}]*)\}`)
	function   = regexp.MustCompile(`^([a-z]+)\((\d+)\)$`)
)

// read reads a pattern, and puts what it names of the stack and of the configuration into it.
func (r *reader) read(text string) (pattern, error) {
	p, err := r.parts(text)
	size := 0
	for _, one := range p {
		size += len(one.text) + one.length
	}
	if err == nil && (len(p) > mostParts || size > longestFixed) {
		return nil, fmt.Errorf("the pattern makes names that are too long: at most %d parts of %d characters together are "+
			"possible", mostParts, longestFixed)
	}
	return p, err
}

func (r *reader) parts(text string) (pattern, error) {
	var p pattern
	for text != "" {
		at := expression.FindStringSubmatchIndex(text)
		if at == nil {
			return append(p, part{text: text}), nil
		}
		one, err := r.expression(text[at[2]:at[3]])
		if err != nil {
			return nil, fmt.Errorf("the pattern has %s: %w", text[at[0]:at[1]], err)
		}
		if p = append(p, part{text: text[:at[0]]}, one); len(p) > mostParts {
			return p, nil
		}
		text = text[at[1]:]
	}
	return p, nil
}

// expression reads what stands between the braces.
func (r *reader) expression(text string) (part, error) {
	switch text {
	case "name", "uuid":
		return part{name: text}, nil
	case "organization":
		return part{text: r.stack.Organization}, nil
	case "project":
		return part{text: r.stack.Project}, nil
	case "stack":
		return part{text: r.stack.Stack}, nil
	}
	if key, ok := strings.CutPrefix(text, "config."); ok {
		value, found := r.config[r.stack.Project+":"+key]
		switch {
		case !found:
			return part{}, fmt.Errorf("the stack has no configuration value %s", key)
		case value.Secret:
			return part{}, fmt.Errorf("%s is secret, and names are not", key)
		}
		return part{text: value.Value}, nil
	}
	call := function.FindStringSubmatch(text)
	if call == nil || alphabets[call[1]] == "" {
		return part{}, fmt.Errorf("it must be name, uuid, hex(N), alphanum(N), string(N), num(N), organization, project, " +
			"stack or config.KEY")
	}
	n, err := strconv.Atoi(call[2])
	if err != nil || n > longestRandom {
		return part{}, fmt.Errorf("at most %d characters are possible", longestRandom)
	}
	return part{name: call[1], length: n}, nil
}

// random reports whether names of the pattern differ from seed to seed.
func (p pattern) random() bool {
	for _, one := range p {
		if one.name == "uuid" || one.length > 0 {
			return true
		}
	}
	return false
}

// name makes a name. The same seed makes the same name.
func (p pattern) name(of string, seed []byte) string {
	random := rand.NewChaCha8(sha256.Sum256(seed))
	pick := rand.New(random)
	var out strings.Builder
	for _, one := range p {
		switch one.name {
		case "":
			out.WriteString(one.text)
		case "name":
			out.WriteString(of)
		case "uuid":
			var id [16]byte
			_, _ = random.Read(id[:]) // it never fails
			id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
			h := hex.EncodeToString(id[:])
			out.WriteString(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
		default:
			for range one.length {
				alphabet := alphabets[one.name]
				out.WriteByte(alphabet[pick.IntN(len(alphabet))])
			}
		}
	}
	return out.String()
}
