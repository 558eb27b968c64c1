package seal

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// rotated is a ring, and what another process has sealed with a key that it made meanwhile, which looks are told.
func rotated(t *testing.T) (k *Keyring, sealed []byte, looks *atomic.Int64) {
	t.Helper()
	k, err := NewKeyring(make([]byte, keySize))
	if err != nil {
		t.Fatal(err)
	}
	next := k.Keys()
	next.Sealing = append(next.Sealing[:1:1], NewSealingKey(time.Now()))
	other := &Keyring{}
	other.Replace(next)
	looks = &atomic.Int64{}
	k.OnUnknown(func() error {
		looks.Add(1)
		time.Sleep(time.Millisecond) // the store is asked
		k.Replace(next)
		return nil
	})
	return k, other.Box(PurposeStore).Seal([]byte("text"), "it"), looks
}

func TestAllWhoMeetANewKeyAtOnceGetIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, sealed, looks := rotated(t)
		var readers sync.WaitGroup
		for range 10 {
			readers.Go(func() {
				if _, err := k.Box(PurposeStore).Open(sealed, "it"); err != nil {
					t.Error(err)
				}
			})
		}
		readers.Wait()
		if n := looks.Load(); n != 1 {
			t.Errorf("it was looked for %d times", n)
		}
	})
}

// A key that is made just after a look for another one is found, too.
func TestAKeyThatIsNewerThanTheLastLookIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, sealed, _ := rotated(t)
		reload := k.reload
		k.OnUnknown(func() error { return errors.New("there is no such key yet") })
		if _, found := k.find(KeyID{1}); found {
			t.Fatal("a key that nobody has made is found")
		}
		k.OnUnknown(reload)
		if _, err := k.Box(PurposeStore).Open(sealed, "it"); err != nil {
			t.Error(err)
		}
	})
}

func TestAKeyThatIsMissingIsLookedForOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _, looks := rotated(t)
		begin := time.Now()
		for range 1000 {
			if _, found := k.find(KeyID{1}); found {
				t.Fatal("a key that nobody has made is found")
			}
		}
		if n, took := looks.Load(), time.Since(begin); n != 1 || took >= reloadEvery {
			t.Errorf("%d looks took %s", n, took)
		}
		time.Sleep(reloadEvery)
		if _, found := k.find(KeyID{1}); found || looks.Load() != 2 {
			t.Errorf("a second later there are %d looks", looks.Load())
		}
		for id := range byte(10) { // each waits for a look of its own
			k.find(KeyID{2, id})
		}
		if n, took := looks.Load(), time.Since(begin); n != 12 || took < 10*reloadEvery {
			t.Errorf("%d looks took %s", n, took)
		}
	})
}
