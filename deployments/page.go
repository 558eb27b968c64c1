package deployments

// Page is a part of a list. Both numbers are from 1; lesser ones count as 1.
type Page struct{ Number, Size int }

// Bounds returns where a page begins and ends in a list of this length, whatever the numbers are: a page after the last
// one is empty.
func (p Page) Bounds(length int) (from, to int) {
	before, size := max(p.Number, 1)-1, max(p.Size, 1)
	if before > length/size { // before*size could overflow
		return length, length
	}
	from = before * size
	return from, from + min(size, length-from)
}
