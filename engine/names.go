package engine

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// rootType is the type of the stack's own resource.
const rootType tokens.Type = "pulumi:pulumi:Stack"

// urnOf returns the URN of a registration. The parent's URN must be the one of this epoch, as the program knows it.
func (r *Run) urnOf(g Registration) urn.URN {
	return urn.New(tokens.QName(r.goal.Stack), tokens.PackageName(r.goal.Project), parentType(g.Parent), g.Type, g.Name)
}

// parentType is what the URNs of a resource's children begin their type with; empty for the stack and for no parent.
func parentType(parent urn.URN) tokens.Type {
	if t := snapshot.QualifiedType(parent); t != rootType {
		return t
	}
	return ""
}

// seed returns the randomness from which a resource's physical name is made. It is the same in every attempt at one
// create, also in later updates and after the state was lost, so an attempt finds what an earlier one made. Another
// create of the URN gets another seed, so a replacement can exist beside what it replaces.
func (r *Run) seed(u urn.URN) []byte {
	m := r.marked(u)
	// An earlier update began this create; its attempts used this seed.
	if m.Seed != nil {
		return m.Seed
	}
	g := r.goal
	if len(g.Identity) > 0 {
		return SeedOf(g.Identity, u, r.generation(u))
	}
	text := cmp.Or(g.StackID, g.Organization+"/"+g.Project+"/"+g.Stack) + "\x00" + string(u) + "\x00" +
		strconv.Itoa(g.Version)
	// Each recorded create of the URN changes the seed of the next one.
	if m.Creates > 0 {
		text += "\x00" + strconv.Itoa(m.Creates)
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// SeedOf returns the seed of one generation of a resource. The names of stack and project are no part of it, because a
// rename changes them.
func SeedOf(identity []byte, u urn.URN, generation int) []byte {
	sum := hmac.New(sha256.New, identity)
	_, _ = sum.Write([]byte("seed\x00" + string(snapshot.QualifiedType(u)) + "\x00" + snapshot.NameOf(u) + "\x00" +
		strconv.Itoa(generation)))
	return sum.Sum(nil)
}

// since returns the version of the update that began the next create of a resource; 0 if its seed is of it alone.
func (r *Run) since(u urn.URN) int {
	if m := r.marked(u); m.Seed != nil || len(r.goal.Identity) == 0 {
		return m.Since
	}
	return r.goal.Version
}

// generation returns the number of the next create of a resource: names of former generations are not used again,
// because a deletion may still have its effect, and some clouds keep the names of what was deleted.
func (r *Run) generation(u urn.URN) int {
	first := r.goal.Generations[Label(u)]
	if first == 0 && r.had[u] {
		first = 1
	}
	return first + r.marked(u).Creates
}

// Label stands for a resource in Goal.Generations: a digest of its URN without the names of stack and project.
func Label(u urn.URN) string {
	sum := sha256.Sum256([]byte(string(snapshot.QualifiedType(u)) + "\x00" + snapshot.NameOf(u)))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// ProviderID returns the id of a provider resource, a UUID: the same for every attempt with the same seed.
func ProviderID(seed []byte) string {
	sum := sha256.Sum256(append([]byte("provider\x00"), seed...))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
