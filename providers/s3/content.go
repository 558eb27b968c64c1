package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/remote"
	"github.com/deployctl/deployctl/provider"
)

// content is what an object shall hold; it can be read more than once, because a request may be sent more than once.
type content struct {
	reader io.ReadSeeker
	size   int64
	close  func()
}

// open opens the content of an object. Files are streamed, and so is what comes from a URL, by way of a temporary
// file; text is held in memory.
func open(ctx context.Context, in ObjectIn) (*content, error) {
	switch {
	case in.Content != nil:
		return inMemory([]byte(*in.Content)), nil
	case in.Source == nil:
		return nil, errors.New("there is none")
	case in.Source.IsPath():
		return openFile(ctx, in.Source.Path)
	case strings.HasPrefix(in.Source.URI, "file:"):
		at, err := url.Parse(in.Source.URI)
		if err != nil {
			return nil, err
		}
		return openFile(ctx, at.Path)
	case in.Source.IsURI():
		return fetch(ctx, in.Source.URI)
	}
	data, err := in.Source.Bytes()
	if err != nil {
		return nil, err
	}
	return inMemory(data), nil
}

func inMemory(data []byte) *content {
	return &content{reader: bytes.NewReader(data), size: int64(len(data)), close: func() {}}
}

// files opens files as this process can, but no pipe or device, which may have no end.
var files *sandbox.Box

func openFile(ctx context.Context, name string) (*content, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(provider.ProgramDir(ctx), name)
	}
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &content{reader: file, size: info.Size(), close: func() { _ = file.Close() }}, nil
}

// fetch downloads what is at a URL.
func fetch(ctx context.Context, address string) (*content, error) {
	body, err := remote.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	file, err := body.Keep()
	if err != nil {
		return nil, err
	}
	return &content{reader: file, size: file.Size, close: func() { _ = file.Close() }}, nil
}

// kept fetches the content that an object has, which is the declared one. With ignoreChanges an asset stays declared
// whose file is gone, and everything else of its object may change still.
func (o *opened) kept(ctx context.Context, in ObjectIn, seen observed) (*content, error) {
	answer, err := o.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &in.Bucket, Key: &in.Key, IfMatch: &seen.etag})
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	file, err := remote.Keep(struct {
		io.Reader
		io.Closer
	}{io.TeeReader(answer.Body, sum), answer.Body})
	if err != nil {
		return nil, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != seen.digest {
		return nil, errors.Join(errors.New("it is not the one whose digest the object has in its metadata"), file.Close())
	}
	return &content{reader: file, size: file.Size, close: func() { _ = file.Close() }}, nil
}

// sniff guesses the media type from the first bytes.
func (c *content) sniff() (string, error) {
	const enough = 512
	head := make([]byte, enough)
	n, err := io.ReadFull(c.reader, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	_, err = c.reader.Seek(0, io.SeekStart)
	return http.DetectContentType(head[:n]), err
}

// typeByName is the media type of a key's extension, empty when it is none of these. The table is our own because the
// one of the machine differs from machine to machine, and an update must not depend on where it runs.
func typeByName(key string) string { return mediaTypes[strings.ToLower(path.Ext(key))] }

var mediaTypes = map[string]string{
	".avif": "image/avif", ".bmp": "image/bmp", ".bz2": "application/x-bzip2", ".css": "text/css; charset=utf-8",
	".csv": "text/csv; charset=utf-8", ".eot": "application/vnd.ms-fontobject", ".gif": "image/gif",
	".gz":  "application/gzip",
	".htm": "text/html; charset=utf-8", ".html": "text/html; charset=utf-8", ".ico": "image/x-icon",
	".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".js": "text/javascript; charset=utf-8", ".json": "application/json",
	".map": "application/json", ".md": "text/markdown; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".mp3": "audio/mpeg", ".mp4": "video/mp4", ".ogg": "audio/ogg", ".otf": "font/otf", ".pdf": "application/pdf",
	".png": "image/png", ".rss": "application/rss+xml", ".svg": "image/svg+xml", ".tar": "application/x-tar",
	".tif": "image/tiff", ".tiff": "image/tiff", ".ttf": "font/ttf", ".txt": "text/plain; charset=utf-8",
	".wasm": "application/wasm", ".wav": "audio/wav", ".webm": "video/webm",
	".webmanifest": "application/manifest+json",
	".webp":        "image/webp", ".woff": "font/woff", ".woff2": "font/woff2", ".xml": "application/xml",
	".yaml": "application/yaml", ".yml": "application/yaml", ".zip": "application/zip", ".zst": "application/zstd",
}
