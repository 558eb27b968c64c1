package main

import (
	"slices"
	"testing"
)

func TestAnIdentifierIsSplitIntoItsWords(t *testing.T) {
	for name, want := range map[string][]string{
		"settlePending": {"settle", "Pending"}, "URNOf": {"URN", "Of"}, "ParseURN": {"Parse", "URN"},
		"s3Endpoint": {"s3", "Endpoint"}, "told": {"told"}, "HTTPServer2Go": {"HTTP", "Server2", "Go"},
	} {
		if got := words(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestARetiredWordIsFoundInNamesAndTexts(t *testing.T) {
	names, texts, err := parse("# a comment\nname: unruled → NoRule\ntext: put right → remediate\n")
	if err != nil || names["unruled"] != "NoRule" || len(texts) != 1 {
		t.Fatalf("%v %v %v", names, texts, err)
	}
	if p := texts[0].pattern; !p.MatchString("drift is Put\nright by it") || p.MatchString("input right") {
		t.Errorf("%v", p)
	}
	if _, _, err := parse("unruled"); err == nil {
		t.Error("a line of no form is taken")
	}
}
