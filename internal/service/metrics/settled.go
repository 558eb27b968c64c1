package metrics

import "sync"

// mostPackages bounds the values of the label package: programs name packages.
const mostPackages = 100

// names are values of a label.
type names struct {
	mu    sync.Mutex
	known map[string]bool
}

// bounded returns a name, or "other" if there are too many already.
func (n *names) bounded(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.known[name]:
		return name
	case len(n.known) >= mostPackages || len(name) > mostPackages:
		return "other"
	case n.known == nil:
		n.known = map[string]bool{}
	}
	n.known[name] = true
	return name
}

// Settled counts what settling a create of a package came to, by the kind of its rule.
func (m *Metrics) Settled(pkg, rule, result string) {
	m.settled.WithLabelValues(m.packages.bounded(pkg), rule, result).Inc()
}
