package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/display"
)

// lineReader reads lines in the background, so that a question can be interrupted.
type lineReader struct {
	lines chan string
}

func (s *Env) reader() *lineReader {
	s.once.Do(func() {
		s.lines = &lineReader{lines: make(chan string)}
		go func() {
			defer close(s.lines.lines)
			scanner := bufio.NewScanner(s.In)
			for scanner.Scan() {
				s.lines.lines <- scanner.Text()
			}
		}()
	})
	return s.lines
}

// Ask prints a question and reads one line; false at the end of input. The error is that of ctx, if it ends first.
func (s *Env) Ask(ctx context.Context, question string) (string, bool, error) {
	_, _ = fmt.Fprint(s.Out, display.Fold(question, s.Screen))
	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(s.Out)
		return "", false, ctx.Err()
	case line, ok := <-s.reader().lines:
		return strings.TrimSpace(line), ok, nil
	}
}

// Confirm asks until the answer is yes or no. details may be nil.
func (s *Session) Confirm(ctx context.Context, question string, details func()) error {
	choices := "yes/no"
	if details != nil {
		choices += "/details"
	}
	for {
		answer, ok, err := s.Ask(ctx, fmt.Sprintf("\n%s [%s]: ", question, choices))
		if err != nil {
			return err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return nil
		case "n", "no":
			return s.Declined()
		case "d", "details":
			if details != nil {
				details()
			}
		}
		if !ok {
			return s.Declined()
		}
		if !understood(answer, details != nil) {
			s.Say("Please type %s.", strings.ReplaceAll(choices, "/", " or "))
		}
	}
}

// understood reports whether an answer, neither yes nor no, is one of the question's choices.
func understood(answer string, details bool) bool {
	answer = strings.ToLower(answer)
	return details && (answer == "d" || answer == "details")
}

// Declined ends a command whose question was not answered with yes.
func (s *Session) Declined() error {
	if s.Kept != "" {
		s.Say("No resource was changed. %s keeps what --config has set.", s.Kept)
	} else {
		s.Say("Nothing was changed.")
	}
	return Declined()
}

// MustAsk returns an error if the command needs a confirmation and cannot ask for it.
func (s *Session) MustAsk() error {
	if s.Flags.Bool("yes") || s.Asks() {
		return nil
	}
	return deployments.Errorf(deployments.CodeInvalid, "this command needs confirmation, but cannot ask for it here; "+
		"pass --yes to confirm")
}

// passphrase returns the passphrase from the environment, or from the file that it names, or asks for it.
func (s *Session) passphrase(confirm bool) (string, error) {
	if phrase, set := s.lookup("PULUMI_CONFIG_PASSPHRASE"); set {
		return phrase, nil
	}
	if path := s.Variable("PULUMI_CONFIG_PASSPHRASE_FILE"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", deployments.Errorf(deployments.CodeInvalid,
				"cannot read the passphrase (PULUMI_CONFIG_PASSPHRASE_FILE): %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	if !s.Asks() || s.Hidden == nil {
		return "", deployments.Errorf(deployments.CodeInvalid,
			"the stack's secrets need a passphrase; set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE")
	}
	phrase, err := s.AskHidden("Passphrase: ")
	if err != nil || !confirm {
		return phrase, err
	}
	again, err := s.AskHidden("Passphrase again: ")
	if err == nil && again != phrase {
		err = deployments.Errorf(deployments.CodeInvalid, "the passphrases differ; try again")
	}
	return phrase, err
}

// AskHidden asks for a line that is not shown.
func (s *Session) AskHidden(question string) (string, error) {
	_, _ = fmt.Fprint(s.Err, question)
	text, err := s.Hidden()
	_, _ = fmt.Fprintln(s.Err)
	if errors.Is(err, io.EOF) {
		err = NoValue()
	}
	return text, err
}

// NoValue is the error of a question for a value whose answer is the end of the input.
func NoValue() error {
	return deployments.Errorf(deployments.CodeInvalid, "no value was given, and nothing was changed")
}

// ConfirmForgetting asks whether to forget the resources that the error refused names. If it cannot ask, it returns an
// error.
func (s *Session) ConfirmForgetting(ctx context.Context, refused error, askable bool) error {
	if !askable || !s.Asks() {
		return deployments.Errorf(deployments.CodeUnconfirmed, "%w; pass --force if this is intended", refused)
	}
	return s.Confirm(ctx, "Caution: "+refused.Error()+".\nForget them?", nil)
}
