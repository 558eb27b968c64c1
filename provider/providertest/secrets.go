package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"google.golang.org/protobuf/types/known/structpb"
)

// shortest is how long a secret must be to be looked for: shorter ones occur anywhere.
const shortest = 4

// leaks are the secrets of a life, and where they were seen.
type leaks struct {
	mu      sync.Mutex
	secrets []string
	seen    []string
}

// learn adds the secrets of inputs.
func (l *leaks) learn(inputs *structpb.Struct) error {
	bag, err := unwire(inputs)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range redaction.SecretTexts(resource.NewProperty(bag)) {
		if len(text) >= shortest && !slices.Contains(l.secrets, text) {
			l.secrets = append(l.secrets, text)
		}
	}
	return nil
}

// any says whether there are secrets to look for.
func (l *leaks) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.secrets) > 0
}

// search looks for secrets in a text that people see.
func (l *leaks) search(where, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, secret := range l.secrets {
		if strings.Contains(text, secret) && !slices.Contains(l.seen, where) {
			l.seen = append(l.seen, where)
		}
	}
}

// bag looks for secrets in properties that are not marked as secret.
func (l *leaks) bag(where string, properties *structpb.Struct) {
	bag, err := unwire(properties)
	if err != nil {
		return
	}
	for _, name := range bag.StableKeys() {
		for _, text := range plainTexts(bag[name]) {
			l.search(fmt.Sprintf("%s: %q", where, name), text)
		}
	}
}

// plainTexts returns the texts of a value that are not secret.
func plainTexts(v resource.PropertyValue) []string {
	var texts []string
	switch {
	case v.IsString():
		texts = append(texts, v.StringValue())
	case v.IsArray():
		for _, item := range v.ArrayValue() {
			texts = append(texts, plainTexts(item)...)
		}
	case v.IsObject():
		for name, item := range v.ObjectValue() {
			texts = append(append(texts, string(name)), plainTexts(item)...)
		}
	case v.IsAsset():
		texts = append(texts, v.AssetValue().Text)
	}
	return texts
}

// secretsStaySecret lives with secrets, undisturbed and not, and looks for them in what people see: outputs, error
// messages and logs.
func secretsStaySecret(l *life) error {
	none := false
	written, err := captured(func() {
		_ = undisturbedLife(l) // what else is wrong, the other checks say
		if none = !l.leak.any(); none {
			return
		}
		l.kinds = []interruption{unanswered}
		for _, check := range []func(*life) error{preview, lostState, interruptedCreate, interruptedUpdate,
			interruptedDelete, foreignThing} {
			_ = check(l)
		}
	})
	if err != nil || none {
		return err
	}
	l.leak.search("what the provider writes to standard output, standard error or its log", written)
	l.leak.mu.Lock()
	defer l.leak.mu.Unlock()
	if len(l.leak.seen) == 0 {
		return nil
	}
	return faultf("inputs-and-outputs", "a secret is in %s: mark the output as secret or inherit, and use Redact for "+
		"messages",
		strings.Join(l.leak.seen, ", and in "))
}

// captured returns what is written to the standard streams meanwhile.
func captured(do func()) (written string, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	read := make(chan error, 1)
	stdout, stderr, logs := os.Stdout, os.Stderr, log.Writer()
	go func() {
		_, err := io.Copy(&text, out)
		read <- err
	}()
	os.Stdout, os.Stderr = in, in
	log.SetOutput(in)
	defer func() {
		os.Stdout, os.Stderr = stdout, stderr
		log.SetOutput(logs)
		err = errors.Join(err, in.Close(), <-read, out.Close())
		written = text.String()
	}()
	do()
	return "", nil
}
