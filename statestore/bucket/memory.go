package bucket

import (
	"context"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Memory is an Objects in memory. The zero Memory is empty and ready.
type Memory struct {
	mu      sync.Mutex
	objects map[string]Object
	written map[string]time.Time
	writes  int
}

// Get implements Objects.
func (m *Memory) Get(ctx context.Context, key string) (Object, error) {
	if err := ctx.Err(); err != nil {
		return Object{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return Object{}, ErrAbsent
	}
	return Object{Data: append([]byte(nil), o.Data...), Tag: o.Tag}, nil
}

// Tag implements Objects.
func (m *Memory) Tag(ctx context.Context, key string) (string, error) {
	o, err := m.Get(ctx, key)
	return o.Tag, err
}

// Put implements Objects.
func (m *Memory) Put(ctx context.Context, key string, data []byte, c Condition) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if c.Absent && ok || c.Tag != "" && o.Tag != c.Tag {
		return "", ErrChanged
	}
	if m.objects == nil {
		m.objects, m.written = map[string]Object{}, map[string]time.Time{}
	}
	m.writes++
	tag := strconv.Itoa(m.writes)
	m.objects[key], m.written[key] = Object{Data: append([]byte(nil), data...), Tag: tag}, time.Now()
	return tag, nil
}

// Delete implements Objects.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

// List implements Objects.
func (m *Memory) List(ctx context.Context, q Query) (Listing, error) {
	if err := ctx.Err(); err != nil {
		return Listing{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[string]bool{}
	var l Listing
	for key := range m.objects {
		rest, ok := strings.CutPrefix(key, q.Prefix)
		if !ok {
			continue
		}
		if i := strings.IndexByte(rest, '/'); q.Fold && i >= 0 {
			key = q.Prefix + rest[:i+1]
		}
		if key > q.After && !seen[key] {
			seen[key] = true
			l.Keys = append(l.Keys, key)
		}
	}
	sort.Strings(l.Keys)
	if q.Limit > 0 && len(l.Keys) > q.Limit {
		l.Keys, l.More = l.Keys[:q.Limit], true
	}
	for _, key := range l.Keys {
		at := m.written[key]
		if q.Fold && strings.HasSuffix(key, "/") {
			at = time.Time{}
		}
		l.Written = append(l.Written, at)
	}
	return l, nil
}
