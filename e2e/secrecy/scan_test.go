//go:build unix

package secrecy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/klauspost/compress/zstd"

	_ "modernc.org/sqlite" // reads Temporal's database
)

// needles are what is looked for, by name.
type needles map[string][]byte

// found is where needles were seen, by the needle's name.
type found map[string][]string

func (f found) add(where string, names map[string]bool) {
	for name := range names {
		f[name] = append(f[name], where)
	}
}

const (
	maxDepth = 6        // of encodings in encodings
	maxPlain = 64 << 20 // bytes that something is decompressed to
)

// Encoded text that is long enough to hold a needle or a compressed one.
var (
	base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{24,}`)
	hexRun    = regexp.MustCompile(`[0-9a-fA-F]{32,}`)
)

// in looks for needles in data, in whatever data holds compressed (gzip, zlib, zstd) or encoded (base64 at every
// alignment, hex), and in what that holds.
func (n needles) in(data []byte) map[string]bool {
	seen := map[string]bool{}
	n.look(data, maxDepth, seen)
	return seen
}

func (n needles) look(data []byte, depth int, seen map[string]bool) {
	for name, needle := range n {
		if !seen[name] && bytes.Contains(data, needle) {
			seen[name] = true
		}
	}
	if depth == 0 || len(seen) == len(n) {
		return
	}
	for _, inner := range decompressed(data) {
		n.look(inner, depth-1, seen)
	}
	for _, inner := range decoded(data) {
		n.look(inner, depth-1, seen)
	}
}

// decompressed gives everything that unpacks, wherever it begins; of what breaks off, as much as there is.
func decompressed(data []byte) (all [][]byte) {
	for _, format := range []struct {
		magic []byte
		open  func(io.Reader) (io.Reader, error)
	}{
		{[]byte{0x1f, 0x8b, 8}, func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
		{[]byte{0x78, 0x01}, func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }},
		{[]byte{0x78, 0x9c}, func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }},
		{[]byte{0x78, 0xda}, func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }},
		{[]byte{0x28, 0xb5, 0x2f, 0xfd}, func(r io.Reader) (io.Reader, error) {
			return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPlain))
		}},
	} {
		for at := 0; ; at++ {
			next := bytes.Index(data[at:], format.magic)
			if next < 0 {
				break
			}
			at += next
			r, err := format.open(bytes.NewReader(data[at:]))
			if err != nil {
				continue
			}
			plain, _ := io.ReadAll(io.LimitReader(r, maxPlain)) // other bytes follow, or it is only random
			if d, ok := r.(*zstd.Decoder); ok {
				d.Close()
			}
			if len(plain) > 0 {
				all = append(all, plain)
			}
		}
	}
	return all
}

// decoded gives what encoded text stands for.
func decoded(data []byte) (all [][]byte) {
	for _, run := range hexRun.FindAll(data, -1) {
		for shift := range 2 {
			text := run[shift:]
			plain := make([]byte, len(text)/2)
			if _, err := hex.Decode(plain, text[:len(text)/2*2]); err == nil {
				all = append(all, plain)
			}
		}
	}
	for _, run := range base64Run.FindAll(data, -1) {
		text := strings.NewReplacer("-", "+", "_", "/").Replace(string(run))
		for shift := range 4 {
			aligned := text[shift:]
			if len(aligned)%4 == 1 {
				aligned = aligned[:len(aligned)-1]
			}
			if plain, err := base64.RawStdEncoding.DecodeString(aligned); err == nil {
				all = append(all, plain)
			}
		}
	}
	return all
}

// files looks through everything below a directory, but for the files that exist to hold secrets. Where names are
// relative to dir. SQLite's databases are read value by value too: pages cut values apart.
func (n needles) files(t *testing.T, dir string, except ...string) found {
	t.Helper()
	all := found{}
	harness.Must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		where, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		for _, name := range except {
			if strings.HasSuffix(where, name) {
				return nil
			}
		}
		text, err := os.ReadFile(path) //nolint:gosec // below the test's directory
		if err != nil {
			return err
		}
		all.add(where, n.in(text))
		all.add(where, n.in([]byte(where)))
		if bytes.HasPrefix(text, []byte("SQLite format 3\x00")) {
			return n.database(path, where, all)
		}
		return nil
	}))
	return all
}

// database looks through every value of every table.
func (n needles) database(path, where string, all found) error {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	tables, err := column(db, "SELECT name FROM sqlite_master WHERE type = 'table'")
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := n.table(db, string(table), where, all); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	return nil
}

func column(db *sql.DB, query string) (values [][]byte, err error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var value []byte
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}

func (n needles) table(db *sql.DB, table, where string, all found) error {
	rows, err := db.Query(`SELECT * FROM "` + table + `"`) //nolint:gosec // the database's own name
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		for i, value := range values {
			switch value := value.(type) {
			case []byte:
				all.add(where+" "+table+"."+columns[i], n.in(value))
			case string:
				all.add(where+" "+table+"."+columns[i], n.in([]byte(value)))
			}
		}
	}
	return rows.Err()
}

func TestTheScanFindsWhatIsNested(t *testing.T) {
	const secret = "a-needle-in-a-haystack"
	zstandard := func(plain []byte) []byte {
		w, err := zstd.NewWriter(nil)
		harness.Must(t, err)
		return w.EncodeAll(plain, nil)
	}
	zipped := func(plain []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(plain)
		harness.Must(t, err)
		harness.Must(t, w.Close())
		return b.Bytes()
	}
	in64 := func(plain []byte) []byte { return []byte(`{"v":"` + base64.URLEncoding.EncodeToString(plain) + `"}`) }
	inHex := func(plain []byte) []byte { return []byte("x" + hex.EncodeToString(plain)) }
	plain := []byte("..." + secret + "...")
	for name, data := range map[string][]byte{
		"plain":                       plain,
		"gzip":                        zipped(plain),
		"zstd among others":           append(append([]byte("\x01nonce"), zstandard(plain)...), "tag"...),
		"base64 of hex":               in64(inHex(plain)),
		"gzip of base64 of zstd":      zipped(in64(zstandard(plain))),
		"base64 of an odd part of it": in64(append([]byte{7}, plain...)),
	} {
		if !(needles{"it": []byte(secret)}).in(data)["it"] {
			t.Errorf("not found: %s", name)
		}
	}
	if seen := (needles{"it": []byte("something else")}).in(zipped(plain)); len(seen) > 0 {
		t.Errorf("found what is not there: %v", seen)
	}
}
