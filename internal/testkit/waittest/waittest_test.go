package waittest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a test that must fail, and keeps what it says.
type recorder struct {
	testing.TB
	said     string
	cleanups []func()
}

func (r *recorder) Helper()                 {}
func (r *recorder) Logf(f string, a ...any) { r.said += fmt.Sprintf(f, a...) }
func (r *recorder) Cleanup(f func())        { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatalf(f string, a ...any) {
	r.Logf(f, a...)
	panic(r)
}

// failing runs what must fail, and returns what it says.
func failing(t *testing.T, wait func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if recover() != any(r) {
				t.Error("it does not fail")
			}
		}()
		wait(r)
	}()
	return r.said
}

func TestAWaitThatEndsSaysWhatItWaitedForAndWhatEveryGoroutineDid(t *testing.T) {
	for name, wait := range map[string]func(testing.TB){
		"until": func(t testing.TB) { Until(t, "the cow jumps", func() bool { return false }) },
		"for":   func(t testing.TB) { For(t, "the cow jumps", make(chan int)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			said := failing(t, wait)
			if !strings.Contains(said, "never: the cow jumps") || !strings.Contains(said, "goroutine ") {
				t.Errorf("%s: it says %q", name, said)
			}
			if waited := time.Since(began); waited != Patience {
				t.Errorf("%s: it waited for %s", name, waited)
			}
		})
	}
}

func TestWhatComesIsNotWaitedForAnyLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, values, closed := time.Now(), make(chan int), make(chan int)
		go func() {
			time.Sleep(Patience / 2)
			values <- 7
			close(closed)
		}()
		if got := For(t, "a value comes", values); got != 7 || time.Since(began) != Patience/2 {
			t.Errorf("%d after %s", got, time.Since(began))
		}
		For(t, "the channel is closed", closed)
		looks := 0
		Until(t, "it was looked at five times", func() bool { looks++; return looks == 5 })
		if took := time.Since(began) - Patience/2; took > time.Second {
			t.Errorf("five looks took %s", took)
		}
	})
}

func TestAContextEndsWithPatienceAndTellsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		ctx, began := Context(r), time.Now()
		<-ctx.Done()
		if waited := time.Since(began); waited != Patience || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%v after %s", ctx.Err(), waited)
		}
		r.cleanups[0]()
		if !strings.Contains(r.said, "the test hangs") || !strings.Contains(r.said, "goroutine ") {
			t.Errorf("it says %q", r.said)
		}
	})
}

func TestAContextEndsWithItsTestAndTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		ctx := Context(r)
		r.cleanups[0]()
		if !errors.Is(ctx.Err(), context.Canceled) || r.said != "" {
			t.Errorf("%v, and it says %q", ctx.Err(), r.said)
		}
	})
}

// TestNoTestEnvironmentOfTemporalHasADeadlineOfItsOwn finds those that are left with the default of three seconds,
// which a busy machine needs at times.
func TestNoTestEnvironmentOfTemporalHasADeadlineOfItsOwn(t *testing.T) {
	found := 0
	eachTest(t, func(path, text string) {
		made := strings.Count(text, ".NewTestActivity"+"Environment()") +
			strings.Count(text, ".NewTestWorkflow"+"Environment()")
		if made > strings.Count(text, ".SetTestTimeout(waittest.") {
			t.Errorf("%s makes an environment: give it SetTestTimeout(waittest.Patience)", path)
		}
		found += made
	})
	if found == 0 {
		t.Error("no environment is found")
	}
}

// number is a look for a bare number in a text.
var number = regexp.MustCompile(`Contains\([^"\n]*, "[0-9]{2,}"\)`)

// TestNoTestLooksForABareNumber holds that a test looks for more than digits in what it is told: the port of a server
// may have them, too.
func TestNoTestLooksForABareNumber(t *testing.T) {
	eachTest(t, func(path, text string) {
		for _, look := range number.FindAllString(text, -1) {
			t.Errorf("%s: %s: a port may have these digits; look for a word beside them", path, look)
		}
	})
}

// eachTest calls f with each file of tests of the tree.
func eachTest(t *testing.T, f func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			f(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
