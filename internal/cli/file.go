package cli

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-coord/coord/internal/hold"
)

// fileLimit is the most that is read of a file: bundles of authorities have some 200 KiB.
const fileLimit = 1 << 20

// Reasons why a file is not accepted.
var (
	errTooLarge    = fmt.Errorf("the file has more than %d bytes", fileLimit)
	errNoPEM       = errors.New("there is no PEM block in the file")
	errNoCert      = errors.New("there is no certificate in the file")
	errNoKey       = errors.New("there is no private key in the file")
	errEncrypted   = errors.New("the key is encrypted")
	errEmptyFile   = errors.New("the file is empty")
	errSecondLine  = errors.New("the file has more than one line")
	errNoFileNamed = errors.New("no file is named")
)

// file is a flag that names a file. The file is read when the flag is set, so that whatever becomes of it
// later, the process and its guard have what was meant.
type file struct {
	path    string
	content []byte
	accepts string
	check   func([]byte) ([]byte, error) // gives what counts of the content
}

func (f *file) Set(path string) error {
	content, err := readFile(path)
	if err == nil {
		content, err = f.check(content)
	}
	if err != nil {
		return fmt.Errorf("%w; want %s", err, f.accepts)
	}
	f.path, f.content = path, content
	return nil
}

// Quote is a path as typed, safe to print: its end says most.
func (f *file) Quote(path string) string { return `"` + hold.EscapeCut(path, 400) + `"` }

func (f *file) String() string  { return f.path }
func (f *file) Type() string    { return "file" }
func (f *file) Accepts() string { return f.accepts }

// readFile reads a file of a sensible size. What the system says is kept, without the path, which the caller names.
func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, errNoFileNamed
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, WithoutPath(err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, fileLimit+1))
	switch {
	case err != nil:
		return nil, WithoutPath(err)
	case len(content) > fileLimit:
		return nil, errTooLarge
	}
	return content, nil
}

// WithoutPath is what the system said, without the path: the caller names it as the user wrote it.
func WithoutPath(err error) error {
	var failed *os.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// checkCerts accepts certificates in PEM, each of which has to be one.
func checkCerts(content []byte) ([]byte, error) {
	blocks, certs := 0, 0
	for rest := content; ; blocks++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, err
		}
		certs++
	}
	switch {
	case blocks == 0:
		return nil, errNoPEM
	case certs == 0:
		return nil, errNoCert
	}
	return content, nil
}

// checkKey accepts a private key in PEM that needs no passphrase. Whether it fits is seen with its certificate.
func checkKey(content []byte) ([]byte, error) {
	blocks := 0
	for rest := content; ; blocks++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return nil, errEncrypted
		case block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY"):
			return content, nil
		}
	}
	if blocks == 0 {
		return nil, errNoPEM
	}
	return nil, errNoKey
}

// checkPassword accepts one line, and leaves out its end.
func checkPassword(content []byte) ([]byte, error) {
	line := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	switch {
	case line == "":
		return nil, errEmptyFile
	case strings.ContainsAny(line, "\r\n"):
		return nil, errSecondLine
	}
	return []byte(line), nil
}
