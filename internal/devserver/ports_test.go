package devserver

import "testing"

func TestNobodyChoosesAPortThatAnotherHasChosenAndDoesNotListenOnYet(t *testing.T) {
	var mine, other reserved
	t.Cleanup(mine.release)
	t.Cleanup(other.release)
	port, err := mine.choose(lowestInner, highestInner)
	must(t, err)
	if again, err := other.choose(port, port+1); err == nil {
		t.Errorf("%d was chosen twice", again)
	}
	mine.release()
	if again, err := other.choose(port, port+1); err != nil || again != port {
		t.Errorf("after its release %d is %d, %v", port, again, err)
	}
}
