package deployments_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestTheCodeOfAnErrorIsThatOfTheFirstErrorInItsChain(t *testing.T) {
	missing := deployments.Errorf(deployments.CodeNotFound, "there is no stack")
	for name, c := range map[string]struct {
		err  error
		want deployments.Code
	}{
		"no error":                 {nil, ""},
		"an error of another make": {io.EOF, deployments.CodeInternal},
		"an error":                 {missing, deployments.CodeNotFound},
		"an error with a context":  {fmt.Errorf("read: %w", missing), deployments.CodeNotFound},
		"an error that causes one": {deployments.Errorf(deployments.CodeFormat, "read: %w", missing),
			deployments.CodeFormat},
		"an error among others":      {errors.Join(io.EOF, missing), deployments.CodeNotFound},
		"an error that is quoted":    {errors.New("read: " + missing.Error()), deployments.CodeInternal},
		"an error without a message": {&deployments.Error{Code: deployments.CodeConflict}, deployments.CodeConflict},
	} {
		if got := deployments.CodeOf(c.err); got != c.want {
			t.Errorf("%s: the code is %q, not %q", name, got, c.want)
		}
	}
}

func TestAnErrorKeepsItsCause(t *testing.T) {
	err := deployments.Errorf(deployments.CodeUnavailable, "read the head of %s: %w", dev, io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "read the head of "+dev.String()+": unexpected EOF" {
		t.Errorf("the error is %q", err)
	}
	if err := deployments.Errorf(deployments.CodeInvalid, "too long"); errors.Unwrap(err) != nil {
		t.Errorf("%v has a cause", err)
	}
}

func TestATextThatIsNotUTF8IsRefusedWithItsFirstWrongByte(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "café": "", "\uFFFD": "", "caf\xe9": "it is not UTF-8 (its byte 4 is 0xe9)",
		"\uFFFD\xff": "its byte 4 is 0xff", "\xed\xa0\x80": "its byte 1 is 0xed",
	} {
		for _, err := range []error{deployments.CheckUTF8("it", text), deployments.CheckUTF8("it", []byte(text))} {
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, not %q", text, err, want)
			}
		}
	}
}
