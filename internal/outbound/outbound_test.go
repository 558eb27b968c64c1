package outbound

import (
	"net/netip"
	"testing"
)

func TestOnlyAddressesOfThePublicInternetArePublic(t *testing.T) {
	for text, want := range map[string]bool{
		"140.82.112.3": true, "2606:50c0:8000::153": true, "::ffff:140.82.112.3": true,
		"127.0.0.1": false, "::1": false, "0.0.0.0": false, "::": false, "10.1.2.3": false, "172.16.0.1": false,
		"192.168.1.1": false, "169.254.169.254": false, "fe80::1%eth0": false, "fd00:ec2::254": false,
		"100.100.100.200": false, "192.0.0.192": false, "224.0.0.1": false, "255.255.255.255": false,
		"::ffff:169.254.169.254": false, "64:ff9b::a9fe:a9fe": false, "2002:a9fe:a9fe::1": false, "0.1.2.3": false,
		"fec0::1": false, "::a9fe:a9fe": false, "4000::1": false,
	} {
		if got := IsPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
