package grpcapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestOneWithoutAPlaceTakesThatOfThePartyThatHasTheMost(t *testing.T) {
	p := newPlaces(10)
	names, all := map[*connection]string{}, map[string]*connection{}
	var gone []string
	enter := func(name string) {
		c := &connection{}
		names[c], all[name] = name, c
		party, _, _ := strings.Cut(name, " ")
		if other := p.enter(c, party); other != nil {
			gone = append(gone, names[other])
		}
	}
	for n := range 8 {
		enter(fmt.Sprint("many ", n))
	}
	for _, name := range []string{"few 0", "few 1", "few 2", "one", "many 8"} {
		enter(name)
	}
	if want := []string{"many 0", "many 1", "many 2"}; !slices.Equal(gone, want) {
		t.Errorf("%v give way, not %v", gone, want)
	}
	for _, c := range all { // those that have given way leave, too
		p.leave(c)
	}
	if len(p.taken)+len(p.of) > 0 {
		t.Errorf("there remain %v, %v", p.taken, p.of)
	}
}

func TestAnAddressOfIPv6CountsForItsNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64", "2001:db8:0:0:1::2": "2001:db8::/64",
		"2001:db8:0:1::1": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64", "::ffff:192.0.2.1": "::ffff:192.0.2.1",
		"[2001:db8::1]:443": "2001:db8::/64", "192.0.2.1:443": "192.0.2.1", "pipe": "pipe",
	} {
		if got := Party(address); got != want {
			t.Errorf("%s counts for %s, not %s", address, got, want)
		}
	}
}
