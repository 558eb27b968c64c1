package valuediff

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// block is a stretch of two sequences in which they have nothing in common.
type block struct {
	oldFrom, oldTo int
	newFrom, newTo int
}

// patience bounds the search for the longest common subsequence: after it, the rest is taken for one block.
const patience = time.Second

// blocks gives what differs between two sequences, in order.
func blocks(old, now []string) []block {
	if len(old)+len(now) > symbolsAtMost {
		return []block{{0, len(old), 0, len(now)}}
	}
	symbols := alphabet{}
	engine := diffmatchpatch.New()
	engine.DiffTimeout = patience
	var found []block
	i, j := 0, 0
	open := false
	for _, edit := range engine.DiffMainRunes(symbols.encode(old), symbols.encode(now), false) {
		n := utf8.RuneCountInString(edit.Text)
		if edit.Type == diffmatchpatch.DiffEqual {
			i, j, open = i+n, j+n, false
			continue
		}
		if !open {
			found, open = append(found, block{i, i, j, j}), true
		}
		if edit.Type == diffmatchpatch.DiffDelete {
			i += n
		} else {
			j += n
		}
		found[len(found)-1].oldTo, found[len(found)-1].newTo = i, j
	}
	return found
}

// alphabet gives each different text a rune.
type alphabet map[string]rune

func (a alphabet) encode(texts []string) []rune {
	runes := make([]rune, len(texts))
	for i, text := range texts {
		r, known := a[text]
		if !known {
			r = symbol(len(a))
			a[text] = r
		}
		runes[i] = r
	}
	return runes
}

// symbolsAtMost is how many different texts can be told apart by a rune.
const symbolsAtMost = 1_000_000

// symbol is the n-th rune that survives the way through a string.
func symbol(n int) rune {
	r := rune(n) + 1
	if r >= 0xd800 {
		r += 0x800 // surrogates
	}
	if r >= utf8.RuneError {
		r++
	}
	return r
}

// encodeAll writes elements so that equal ones are equal texts.
func encodeAll(list []any) []string {
	texts := make([]string, len(list))
	for i, element := range list {
		text, err := json.Marshal(element)
		if err != nil {
			text = []byte(OneLine(element))
		}
		texts[i] = string(text)
	}
	return texts
}

// pairsAtMost bounds the comparisons of elements with each other in one block.
const pairsAtMost = 10_000

// pair finds which elements of a block are another form of each other: those that are alike, in order; if none is and
// there are as many on both sides, each and the one at its place.
func pair(old, now []any, b block) (pairs [][2]int, removed, added []int) {
	next := b.newFrom
	taken := map[int]bool{}
	for i := b.oldFrom; i < b.oldTo; i++ {
		best := -1
		if (b.oldTo-b.oldFrom)*(b.newTo-b.newFrom) <= pairsAtMost {
			best = mostAlike(old[i], now, next, b.newTo)
		}
		if best < 0 {
			removed = append(removed, i)
			continue
		}
		pairs, next = append(pairs, [2]int{i, best}), best+1
		taken[best] = true
	}
	for j := b.newFrom; j < b.newTo; j++ {
		if !taken[j] {
			added = append(added, j)
		}
	}
	if len(removed) != len(added) {
		return pairs, removed, added
	}
	for k := range removed {
		pairs = append(pairs, [2]int{removed[k], added[k]})
	}
	return pairs, nil, nil
}

// mostAlike gives the index of the object that shares most with another one, if that is half of it; -1 when there is
// none.
func mostAlike(old any, now []any, from, to int) int {
	best, most := -1, 0
	was, ok := old.(map[string]any)
	for j := from; ok && j < to; j++ {
		is, _ := now[j].(map[string]any)
		same := 0
		for key, value := range was {
			if other, has := is[key]; has && OneLine(other) == OneLine(value) {
				same++
			}
		}
		if same > most && 2*same >= max(len(was), len(is)) {
			best, most = j, same
		}
	}
	return best
}
