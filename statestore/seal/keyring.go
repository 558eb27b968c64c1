package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// KeyID names a sealing key. It is made from the key, tells nothing about it, and stands in the header of whatever it
// sealed.
type KeyID [4]byte

// String returns the id in hexadecimal digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// SealingKey is one of the keys that values are sealed with.
type SealingKey struct {
	Key     []byte    `json:"key"` // 32 bytes
	Created time.Time `json:"created,omitzero"`
	// Retired is when another key took its place; zero while it is current.
	Retired time.Time `json:"retired,omitzero"`
}

// ID returns the key's name.
func (k SealingKey) ID() KeyID { return KeyID(derive(k.Key, "key id")[:4]) }

// NewSealingKey makes a key.
func NewSealingKey(now time.Time) SealingKey {
	k := SealingKey{Key: make([]byte, keySize), Created: now.UTC()}
	_, _ = rand.Read(k.Key) // never fails
	return k
}

// Keys are what a Keyring holds. They are stored only wrapped by a Keeper.
type Keys struct {
	// Root gives the keys that can never change: of digests, of names, and of the secrets in checkpoints and
	// configuration files.
	Root []byte `json:"root"`
	// Sealing are the keys that values are sealed with; the last one seals, the others only open.
	Sealing []SealingKey `json:"sealing"`
}

// Current returns the key that seals.
func (k Keys) Current() SealingKey { return k.Sealing[len(k.Sealing)-1] }

// MasterKeys are the keys of a service whose master key is not kept apart from them: it is the root, and seals.
func MasterKeys(master []byte) (Keys, error) {
	if len(master) != keySize {
		return Keys{}, deployments.Errorf(deployments.CodeInvalid,
			"the service's master key is %d bytes long; it must be %d", len(master), keySize)
	}
	key := append([]byte(nil), master...)
	return Keys{Root: key, Sealing: []SealingKey{{Key: key}}}, nil
}

// Keyring derives the keys of all purposes from the service's keys, which may be replaced while it is used. The zero
// Keyring has no keys until Replace gives it some.
type Keyring struct {
	mu     sync.RWMutex
	keys   Keys
	named  []named // keys.Sealing
	reload func() error

	look   *look               // under way; nil: none is
	looked time.Time           // when the last look began
	missed map[KeyID]time.Time // when a key was last looked for in vain
}

// look is a look for keys that the ring does not have.
type look struct {
	began time.Time     // once it is done
	done  chan struct{} // closed then
}

// named is a sealing key with its id, which takes a while to make.
type named struct {
	id  KeyID
	key []byte
}

// reloadEvery is how often, at most, a ring looks for keys that it does not know.
const reloadEvery = time.Second

// maxMissed bounds the keys that are known to be missing.
const maxMissed = 1000

// NewKeyring makes the ring of a master key, 32 bytes.
func NewKeyring(master []byte) (*Keyring, error) {
	keys, err := MasterKeys(master)
	if err != nil {
		return nil, err
	}
	k := &Keyring{}
	k.Replace(keys)
	return k, nil
}

// Replace gives the ring other keys. What was sealed before opens as long as its key is among them.
func (k *Keyring) Replace(keys Keys) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys, k.named = keys, nil
	for _, key := range keys.Sealing {
		k.named = append(k.named, named{key.ID(), key.Key})
	}
}

// current returns the key that seals.
func (k *Keyring) current() named {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.named[len(k.named)-1]
}

// Keys returns the keys as they are now. They must not be changed.
func (k *Keyring) Keys() Keys {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.keys
}

// OnUnknown sets what is done, once a second at most, when a value was sealed with a key that the ring does not have:
// another process may have made that key. It calls Replace.
func (k *Keyring) OnUnknown(reload func() error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reload = reload
}

// find returns the sealing key with an id, looking for it where keys are kept if it is not known. A key is there before
// anything is sealed with it, so a look that began after the value was met is decisive, and an earlier one is not.
func (k *Keyring) find(id KeyID) (named, bool) {
	met := time.Now()
	for {
		if key, ok := k.known(id); ok {
			return key, true
		}
		l, lead := k.joinLook(id)
		switch {
		case l == nil:
			return named{}, false
		case lead:
			k.lead(l)
		default:
			<-l.done
		}
		if key, ok := k.known(id); ok || !l.began.Before(met) {
			if !ok {
				k.miss(id)
			}
			return key, ok
		}
	}
}

// joinLook returns the look that is under way, or a new one that the caller leads; nil if the key was looked for in
// vain within the last second, or cannot be looked for.
func (k *Keyring) joinLook(id KeyID) (l *look, lead bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if missed, ok := k.missed[id]; k.reload == nil || ok && time.Since(missed) < reloadEvery {
		return nil, false
	}
	if k.look != nil {
		return k.look, false
	}
	k.look = &look{done: make(chan struct{})}
	return k.look, true
}

// lead looks for new keys, a second after the last look at the earliest.
func (k *Keyring) lead(l *look) {
	k.mu.RLock()
	reload, pause := k.reload, reloadEvery-time.Since(k.looked)
	k.mu.RUnlock()
	time.Sleep(pause)
	l.began = time.Now()
	defer func() { // also after a panic: others wait
		k.mu.Lock()
		defer k.mu.Unlock()
		k.looked, k.look = l.began, nil
		close(l.done)
	}()
	_ = reload() // whose error its owner keeps
}

// miss notes that a key was looked for in vain.
func (k *Keyring) miss(id KeyID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.missed == nil || len(k.missed) >= maxMissed {
		k.missed = map[KeyID]time.Time{}
	}
	k.missed[id] = time.Now()
}

func (k *Keyring) known(id KeyID) (named, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, key := range k.named {
		if key.id == id {
			return key, true
		}
	}
	return named{}, false
}

// Key derives the 32-byte key of a purpose from the root by HKDF-SHA256: the same for the same service and purpose,
// always.
func (k *Keyring) Key(purpose string) []byte { return derive(k.Keys().Root, "deployctl/v1/"+purpose) }

// Box returns the box of a purpose.
func (k *Keyring) Box(purpose string) *Box {
	return &Box{ring: k, purpose: purpose, mac: derive(k.Key(purpose), "digest"), aeads: map[KeyID]cipher.AEAD{}}
}

func derive(key []byte, info string) []byte {
	out, err := hkdf.Key(sha256.New, key, nil, info, keySize)
	if err != nil {
		panic(err) // only of a wrong size, which is a constant
	}
	return out
}

// Keeper wraps the keys of a service, so that they can be stored beside what they seal: a master key, or a key
// management service.
type Keeper interface {
	// ID tells one keeper from another; it is stored in plain text.
	ID() string
	Wrap(ctx context.Context, plain []byte) ([]byte, error)
	// Unwrap opens what Wrap of the same keeper made; else an error.
	Unwrap(ctx context.Context, wrapped []byte) ([]byte, error)
}

// purposeKeyring is the purpose of what a master key seals the other keys with.
const purposeKeyring = "keyring"

// MasterKeeper wraps keys with a master key.
type MasterKeeper struct {
	master []byte
	aead   cipher.AEAD
}

// NewMasterKeeper makes the keeper of a master key, 32 bytes.
func NewMasterKeeper(master []byte) (*MasterKeeper, error) {
	if _, err := MasterKeys(master); err != nil {
		return nil, err
	}
	return &MasterKeeper{master: append([]byte(nil), master...), aead: aesGCM(
		derive(master, "deployctl/v1/"+purposeKeyring))}, nil
}

// aesGCM gives the cipher of a 32-byte key.
func aesGCM(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only of a wrong size
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}

// Master returns the master key.
func (m *MasterKeeper) Master() []byte { return m.master }

// ID implements Keeper.
func (m *MasterKeeper) ID() string { return "key " + SealingKey{Key: m.master}.ID().String() }

// Wrap implements Keeper.
func (m *MasterKeeper) Wrap(_ context.Context, plain []byte) ([]byte, error) {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never fails
	return m.aead.Seal(nonce, nonce, plain, []byte(purposeKeyring)), nil
}

// Unwrap implements Keeper.
func (m *MasterKeeper) Unwrap(_ context.Context, wrapped []byte) ([]byte, error) {
	if len(wrapped) < nonceSize+m.aead.Overhead() {
		return nil, fmt.Errorf("it is not a wrapped key")
	}
	plain, err := m.aead.Open(nil, wrapped[:nonceSize], wrapped[nonceSize:], []byte(purposeKeyring))
	if err != nil {
		return nil, fmt.Errorf("it was not wrapped with %s, or is damaged", m.ID())
	}
	return plain, nil
}
