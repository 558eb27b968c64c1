package stackkeys_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

func TestTheMostExactNameOfARetryPolicyWins(t *testing.T) {
	s, err := stackkeys.Read(func(key string) string {
		return map[string]string{stackkeys.Retry: `{"toy": {"attempts": 5, "initial": "2s", "backoff": 1.5, "longest": "1m"},
			"toy:index:Thing": {"attempts": 2}}`}[key]
	})
	if err != nil || !s.Look || s.Marks {
		t.Fatalf("%+v, %v", s, err)
	}
	for name, want := range map[string]deployments.Retry{
		"toy:index:Thing": {Attempts: 2},
		"toy:index:Other": {Attempts: 5, Initial: 2 * time.Second, Backoff: 1.5, Longest: time.Minute},
		"tin:index:Thing": {},
	} {
		if got := s.Retries.Of(tokens.Type(name)); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAValueThatCannotBeMeantIsRefusedByItsKey(t *testing.T) {
	for key, texts := range map[string]map[string]string{
		stackkeys.Retry: {
			`five`:                                          "must be JSON like",
			`{"toy": 5}`:                                    `the policy of "toy"`,
			`{"toy": {"attempt": 5}}`:                       `unknown field "attempt"`,
			`{"toy": {"attempts": 0}}`:                      "attempts must be at least 1",
			`{"toy": {"backoff": 0.5}}`:                     "backoff must be at least 1",
			`{"toy": {"initial": "soon"}}`:                  `initial must be a duration such as 500ms, 1s or 2m, not "soon"`,
			`{"toy": {"longest": "-1s"}}`:                   `longest must be a duration`,
			`{"toy": {"initial": "2m", "longest": "1m"}}`:   "longest must not be shorter than initial",
			`{"a": {"attempts": 1}, "toy": {"initial": 1}}`: `the policy of "toy"`,
		},
		stackkeys.Errors: {
			`[]`:                         "must be JSON like",
			`{"aws": [{"class": "no"}]}`: "must be JSON like",
			`{"aws": [{"class": "definite", "texts": ["x"]}]}`: `unknown field "texts"`,
		},
		stackkeys.Mark:    {"yess": `true or false, not "yess"`},
		stackkeys.Look:    {"never": `true or false, not "never"`},
		stackkeys.Profile: {"acme/aws": `"acme/aws" cannot be the name of a profile`, "*": "cannot be the name"},
		stackkeys.Settle:  {`{"a:b:C": {"read": "${"}}`: "a:b:C: read: character 1"},
	} {
		for text, says := range texts {
			err := stackkeys.Check(key, text)
			if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), key) {
				t.Errorf("%s %s: %v", key, text, err)
			}
		}
	}
}

func TestAPathLeadsIntoAKey(t *testing.T) {
	for of, want := range map[string]string{
		"deployctl:settle": stackkeys.Settle, "deployctl:settle.aws": stackkeys.Settle,
		`deployctl:settle["a:b:C"].read`: stackkeys.Settle, "deployctl:settel": "", "deployctl:settles": "", "web:mark": "",
	} {
		if got := stackkeys.Of(of); got != want {
			t.Errorf("%s is %q", of, got)
		}
	}
}
