package main

import "testing"

func TestFailuresAreCountedByRunAndTest(t *testing.T) {
	t.Parallel()
	first := "--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/one (0.1s)\n        a_test.go:1: no\nFAIL\n" +
		"FAIL\tx.test/a\t0.2s\nok  \tx.test/b\t1s\nFAIL\tx.test/c [build failed]\n"
	counted := tally{}
	counted.add(first)
	counted.add("--- FAIL: TestA (0.1s)\nFAIL\nFAIL\tx.test/a\t0.2s\n")
	counted.add("make: *** [lint] Error 1\n")
	want := "   2  x.test/a TestA\n   1  (no test failed: see the log)\n   1  x.test/a TestA/one\n" +
		"   1  x.test/c (did not build, or ended early)\n"
	if got := counted.String(); got != want {
		t.Errorf("the table is\n%s\nnot\n%s", got, want)
	}
}
